/** Which parts make a box, of what an Engine lists: without an Engine. */
import { describe, expect, it } from 'vitest'
import { parseDockerConfig } from '../../../src/providers/docker/config.ts'
import { assemble } from '../../../src/providers/docker/look.ts'
import { scopeOf } from '../../../src/providers/docker/scope.ts'

const id = (digit: string): string => digit.repeat(64)
const ref = 'r00000000abc'
const token = 'f'.repeat(32)
const part = `leasehold-${ref}-1-${token}`
const labels = { 'leasehold.ref': ref, 'leasehold.attempt': token, 'leasehold.installation': 'abcd1234' }
const anchored = { ...labels, 'leasehold.network': id('a') }

const network = (digit = 'a', changes = {}) => ({ Id: id(digit), Name: part, Created: '2030-01-01T00:00:00Z', Labels: labels, ...changes })
const volume = (changes = {}) => ({ Name: part, Labels: anchored, ...changes })
const container = (digit = 'c', changes = {}) => ({
  Id: id(digit),
  Names: [`/leasehold-${ref}-1`],
  Created: 1_000,
  Labels: anchored,
  State: 'running',
  HostConfig: { NetworkMode: id('a') },
  Mounts: [{ Type: 'volume', Name: part, Destination: '/work' }],
  ...changes,
})
const look = (listed: Partial<Parameters<typeof assemble>[0]>, known?: string[]) =>
  assemble({ containers: [], networks: [], volumes: [], ...listed }, known)

describe('the parts of a box', () => {
  it.each([
    ['all three', { containers: [container()], networks: [network()], volumes: [volume()] }],
    ['no container', { networks: [network()], volumes: [volume()] }],
    ['a volume alone', { volumes: [volume()] }],
    ['a network alone', { networks: [network()] }],
    ['a container alone', { containers: [container()] }],
  ])('are one box with one identity, whatever is left: %s (leases R80)', (_what, listed) => {
    const { boxes, strays } = look(listed)
    expect(strays).toEqual([])
    expect(boxes).toMatchObject([{ nativeId: `leasehold-${ref}-1`, ref, token, network: id('a'), volumeName: part }])
  })

  it('are those of the create that made the volume, and a second network of a lost race goes with them', () => {
    const { boxes, strays } = look({ networks: [network('b'), network('a')], volumes: [volume()] })
    expect(boxes.map((box) => [box.network, box.networks.length])).toEqual([[id('a'), 2]])
    expect(strays).toEqual([])
  })

  it.each([
    ['labels and nothing else', { Mounts: [], HostConfig: { NetworkMode: 'none' } }],
    ['the volume of another, with its labels', { HostConfig: { NetworkMode: 'none' } }],
    ['the network of another, with its labels', { Mounts: [] }],
    ['labels that say another token', { Labels: { ...anchored, 'leasehold.attempt': 'e'.repeat(32) } }],
    ['labels that say another ref', { Labels: { ...anchored, 'leasehold.ref': 'r00000000abd' } }],
    ['labels that name no network', { Labels: labels }],
  ])('are no part of one with %s (orphans R103)', (_what, changes) => {
    const { boxes, strays } = look({ containers: [container('d', changes), container()], networks: [network()], volumes: [volume()] })
    expect(boxes.map((box) => box.container?.Id)).toEqual([id('c')])
    expect(strays.map((one) => one.nativeId)).toEqual([`container:${'d'.repeat(12)}`])
  })

  it('are the recorded ones where a later copy has everything of them, and else the oldest', () => {
    const listed = { containers: [container('d', { Created: 2_000 }), container()], networks: [network()], volumes: [volume()] }
    expect(look(listed).boxes[0]?.container?.Id).toBe(id('c'))
    expect(look(listed, [id('d')]).boxes[0]?.container?.Id).toBe(id('d'))
    expect(look(listed).strays.map((one) => one.nativeId)).toEqual([`container:${'d'.repeat(12)}`])
  })

  it.each([
    ['network', { networks: [network('a', { Name: 'other' })] }],
    ['network', { networks: [network('a', { Labels: { ...labels, 'leasehold.ref': 'r00000000abd' } })] }],
    ['volume', { volumes: [volume({ Name: 'other' })] }],
    ['volume', { volumes: [volume({ Labels: labels })] }],
  ])('are none where the name of a %s says another thing than its labels', (_kind, listed) => {
    const { boxes, strays } = look(listed)
    expect([boxes.length, strays.length]).toEqual([0, 1])
  })
})

describe('the account of a docker backend', () => {
  const info = { ID: 'AAAA', Name: 'n', OSType: 'linux', ServerVersion: '1', Driver: 'overlay2' }
  it('is the id that the Engine says, and its folder besides where two Engines of one machine share an id', () => {
    expect(scopeOf({ ...info, DockerRootDir: '/var/lib/docker' })).toBe('docker:AAAA')
    expect(scopeOf({ ...info, DockerRootDir: '/data/one' })).not.toBe(scopeOf({ ...info, DockerRootDir: '/data/two' }))
  })
})

describe('the configuration of a docker backend', () => {
  it.each([
    [{ noSuchKey: 1 }, /noSuchKey/],
    [[], /mapping/],
    [{ host: 'tcp://h:2375' }, /without TLS/],
    [{ host: 'tcp://h:2376', tlsCa: '/ca' }, /all three/],
    [{ tlsCa: '/a', tlsCert: '/b', tlsKey: '/c' }, /TLS files/],
    [{ image: '' }, /image/],
    [{ folder: 'work' }, /folder/],
    [{ folder: '/' }, /folder/],
    [{ folder: '/proc/x' }, /folder/],
    [{ folder: '/a/../b' }, /folder/],
    [{ folder: '/a:b' }, /folder/],
    [{ network: 'host' }, /network/],
    [{ root: true }, /root/],
    [{ graceSeconds: 11 }, /graceSeconds/],
    [{ memoryMb: 1 }, /memoryMb/],
    [{ cpus: '2' }, /cpus/],
  ])('%j is refused by the name of what is wrong', (config, why) => {
    expect(() => parseDockerConfig(config)).toThrow(why)
  })

  it('is filled up with what is usual', () => {
    expect(parseDockerConfig(null)).toMatchObject({
      host: 'unix:///var/run/docker.sock',
      folder: '/work',
      network: 'own',
      root: 'writable',
      graceSeconds: 5,
    })
  })
})
