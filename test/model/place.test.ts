import { describe, expect, it } from 'vitest'
import { comparePlaces, describePlace, remember, type FilePlace, type ServerPlace } from '../../src/model/place.ts'

const file: FilePlace = {
  kind: 'file',
  machineId: 'a'.repeat(32),
  bootId: 'boot-1',
  device: '2049',
  inode: '131',
  bornAt: '1780000000000000000',
}
const server: ServerPlace = { kind: 'server', systemId: '7300000000000000001', timeline: 1, databaseOid: '16384' }

describe('where an SQLite file lives (decisions 6)', () => {
  it.each<[string, Partial<FilePlace>]>([
    ['nothing: a plain restart, a VACUUM, a folder that was renamed', {}],
    ['a reboot, which gives devices new numbers', { bootId: 'boot-2', device: '64768' }],
    ['a mount that was made anew in the same boot', { device: '2050' }],
    ['a machine that says no id any more', { machineId: null }],
    ['a file system that keeps no time of birth', { bornAt: null }],
  ])('is the same place after %s', (_, change) => {
    expect(comparePlaces(file, { ...file, ...change })).toEqual({ kind: 'same' })
    expect(comparePlaces({ ...file, ...change }, file)).toEqual({ kind: 'same' })
  })

  it.each<[string, Partial<FilePlace>, RegExp]>([
    ['another machine, also with the same disk', { machineId: 'b'.repeat(32) }, /another machine/],
    ['a copy beside it', { inode: '132' }, /copied or restored/],
    ['a copy that got the same inode number', { bornAt: '1780000000000000001' }, /copied or restored/],
    [
      'another file system in the same boot, which does not say when the file was made',
      { device: '2050', bornAt: null },
      /another file system/,
    ],
  ])('is elsewhere: %s', (_, change, why) => {
    expect(comparePlaces(file, { ...file, ...change })).toEqual({ kind: 'elsewhere', why: expect.stringMatching(why) as string })
  })
})

describe('where a PostgreSQL database lives (decisions 6)', () => {
  it('is the same place while cluster, database and timeline are', () => {
    expect(comparePlaces(server, { ...server })).toEqual({ kind: 'same' })
  })

  it.each<[string, Partial<ServerPlace>, RegExp]>([
    ['a dump restored into another cluster', { systemId: '7300000000000000002', databaseOid: '16390' }, /another PostgreSQL cluster/],
    ['a template copy, or a dump restored beside it', { databaseOid: '16390' }, /another database/],
    ['a standby that took over, and a restore to an earlier time', { timeline: 2 }, /timeline 1 to 2/],
  ])('is elsewhere: %s', (_, change, why) => {
    expect(comparePlaces(server, { ...server, ...change })).toEqual({ kind: 'elsewhere', why: expect.stringMatching(why) as string })
  })

  it('is not known to be the same where the server may not be asked, and says what is missing', () => {
    const blind = { ...server, systemId: null, timeline: null }
    for (const [then, now] of [
      [server, blind],
      [blind, blind],
    ] as const)
      expect(comparePlaces(then, now)).toEqual({
        kind: 'unknown',
        why: expect.stringMatching(/system identifier and the timeline/) as string,
      })
    // What can be told still counts.
    expect(comparePlaces(blind, { ...blind, databaseOid: '1' }).kind).toBe('elsewhere')
  })

  it('a file that was moved into a server, or back, is elsewhere', () => {
    expect(comparePlaces(file, server).kind).toBe('elsewhere')
    expect(comparePlaces(server, file).kind).toBe('elsewhere')
  })
})

it('a look that can read less forgets nothing, so that a difference shows once it can be read again', () => {
  const blind = { ...server, systemId: null, timeline: null }
  expect(remember(server, blind)).toEqual(server)
  expect(comparePlaces(remember(server, blind), { ...server, systemId: '1' }).kind).toBe('elsewhere')
  expect(remember(file, { ...file, bootId: 'boot-2', device: '1', bornAt: null })).toEqual({ ...file, bootId: 'boot-2', device: '1' })
  expect(remember(null, blind)).toEqual(blind)
})

it('people see a place in one line', () => {
  expect(describePlace(file)).toBe(`file inode 131 on device 2049 of machine ${'a'.repeat(32)}`)
  expect(describePlace({ ...server, systemId: null })).toContain('cluster (not readable), timeline 1')
})
