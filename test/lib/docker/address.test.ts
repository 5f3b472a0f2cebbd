import { describe, expect, it } from 'vitest'
import { AddressError, addressText, parseAddress } from '../../../src/lib/docker/address.ts'
import { sshArguments } from '../../../src/lib/docker/ssh.ts'

const tls = { ca: '/ca.pem', cert: '/cert.pem', key: '/key.pem' }

describe('the address of an Engine', () => {
  it.each([
    ['unix:///var/run/docker.sock', null, { kind: 'unix', path: '/var/run/docker.sock' }],
    ['tcp://build.example:2376', tls, { kind: 'tcp', host: 'build.example', port: 2376, tls }],
    ['tcp://10.0.0.1', tls, { kind: 'tcp', host: '10.0.0.1', port: 2376, tls }],
    ['tcp://[::1]:99', tls, { kind: 'tcp', host: '::1', port: 99, tls }],
    ['ssh://ci@build.example', null, { kind: 'ssh', user: 'ci', host: 'build.example', port: null, socket: null }],
    [
      'ssh://build.example:2222/run/docker.sock',
      null,
      { kind: 'ssh', user: null, host: 'build.example', port: 2222, socket: 'unix:///run/docker.sock' },
    ],
  ] as const)('%s is understood, and written the same way', (text, files, address) => {
    expect(parseAddress(text, files)).toEqual(address)
    expect(parseAddress(addressText(address), files)).toEqual(address)
  })

  it.each([
    ['tcp://build.example:2375', null, /without TLS/],
    ['unix:///a.sock', tls, /TLS files/],
    ['ssh://host', tls, /TLS files/],
    ['http://host:1', null, /no address/],
    ['unix://relative', null, /no address/],
    ['/var/run/docker.sock', null, /no address/],
    ['', null, /no address/],
    ['ssh://-oProxyCommand=x', null, /no (name|address)/],
    ['ssh://-x@host', null, /no name/],
    ['ssh://host%20name', null, /no (name|address)/],
  ] as const)('%j is refused', (text, files, why) => {
    expect(() => parseAddress(text, files)).toThrow(AddressError)
    expect(() => parseAddress(text, files)).toThrow(why)
  })

  it('shows no password', () => {
    for (const text of ['ssh://ci:canary@host', 'tcp://ci:canary@host', 'what://ci:canary@host']) {
      let said = ''
      try {
        parseAddress(text, null)
      } catch (error) {
        said = String(error)
      }
      expect(said).not.toBe('')
      expect(said).not.toContain('canary')
    }
  })

  it('becomes words of ssh, of which none that comes from the address can be an option, and none is for a shell here', () => {
    expect(sshArguments({ kind: 'ssh', user: 'ci', host: 'build.example', port: 22, socket: "unix:///it's.sock" })).toEqual([
      ...'-o BatchMode=yes -o ConnectTimeout=10 -T -l ci -p 22 -- build.example'.split(' '),
      `docker --host 'unix:///it'\\''s.sock' system dial-stdio`,
    ])
  })
})
