import { describe, expect, test } from 'vitest'
import { createHostCheck, isLoopback } from '../../src/api/host-check.ts'
import { benchForAll } from './support.ts'

const passes = (bind: string, header: string | undefined): boolean => {
  try {
    createHostCheck(bind)(header)
    return true
  } catch {
    return false
  }
}

describe('the name by which the coordinator is asked (DNS rebinding)', () => {
  test.each(['localhost', 'LOCALHOST:7400', '127.0.0.1', '127.0.0.1:7400', '[::1]', '[::1]:7400'])(
    'on a loopback bind %s is answered',
    (header) => {
      expect(passes('127.0.0.1', header)).toBe(true)
    },
  )

  test.each([
    'evil.example',
    'evil.example:7400',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    'evil.example#localhost',
    'localhost@evil.example',
    '192.168.1.2',
    '[::2]',
    '',
    '[localhost]',
  ])('on a loopback bind %j is refused', (header) => {
    expect(passes('127.0.0.1', header)).toBe(false)
  })

  test('the address of the bind itself is a name too, and a public bind answers to every name', () => {
    expect(passes('127.0.0.5', '127.0.0.5:7400')).toBe(true)
    expect(passes('127.0.0.1', '127.0.0.5:7400')).toBe(false)
    expect(passes('0.0.0.0', 'build.example:7400')).toBe(true)
  })

  test.each([
    ['127.0.0.1', true],
    ['127.9.9.9', true],
    ['::1', true],
    ['[::1]', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['127.example', false],
  ])('%s is loopback: %s', (host, expected) => {
    expect(isLoopback(host)).toBe(expected)
  })

  describe('in the server', () => {
    const bench = benchForAll({ start: false })
    test('a foreign name is 400 before the token is looked at, also with a valid one', async () => {
      for (const token of [bench().admin, null]) {
        const { status, body } = await bench().call('GET', '/v1/health', undefined, { token, headers: { host: 'evil.example' } })
        expect({ status, error: body['error'] }).toEqual({ status: 400, error: 'bad_request' })
      }
      expect((await bench().call('GET', '/v1/health', undefined, { headers: { host: 'localhost:7400' } })).status).toBe(200)
    })
  })
})
