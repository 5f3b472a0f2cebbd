/** What needs no box: scripts, configuration, identities, and machines that can't. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { InstallationId } from '../../../src/model/ids.ts'
import { ConfigError } from '../../../src/providers/contract.ts'
import { chooseMode } from '../../../src/providers/process/capability.ts'
import { immutableIdOf, parseImmutableId, parseInitFile, parseNativeId } from '../../../src/providers/process/identity.ts'
import { createProcessProvider } from '../../../src/providers/process/index.ts'
import { enterScript, initScript } from '../../../src/providers/process/scripts.ts'
import { type ProcessTable, type TableEntry, lookAtSessions, namespaceMembers } from '../../../src/providers/process/table.ts'
import { context, createRequest } from '../../conformance/request.ts'

const provider = createProcessProvider({ dataFolder: '/nonexistent', installation: 'abcdefgh' as InstallationId })
const shellcheck = spawnSync('shellcheck', ['--version']).status === 0

describe('the scripts of a box', () => {
  it.skipIf(!shellcheck)('pass shellcheck as POSIX sh', () => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-scripts-'))
    for (const [name, text] of Object.entries({ 'init.sh': initScript, 'enter.sh': enterScript })) {
      writeFileSync(join(folder, name), text)
      const { status, stdout } = spawnSync('shellcheck', ['--shell=sh', join(folder, name)], { encoding: 'utf8' })
      expect(stdout).toBe('')
      expect(status).toBe(0)
    }
    rmSync(folder, { recursive: true })
  })
})

describe('the configuration of a process backend', () => {
  it('has its defaults, and stays as it is when it is read again', () => {
    const config = provider.parseConfig(undefined)
    expect(config).toEqual({ mode: process.env['LEASEHOLD_PROCESS_MODE'] ?? 'auto', graceSeconds: 5 })
    expect(provider.parseConfig({ mode: null, graceSeconds: null })).toEqual(config)
    expect(provider.parseConfig(config)).toEqual(config)
    expect(provider.parseConfig({ mode: 'session', graceSeconds: 0 })).toEqual({ mode: 'session', graceSeconds: 0 })
  })
  it.each([
    [{ nope: 1 }, /'nope'/],
    [{ mode: 'jail' }, /mode/],
    [{ graceSeconds: -1 }, /graceSeconds/],
    [{ graceSeconds: 21 }, /graceSeconds/],
    [{ graceSeconds: '5' }, /graceSeconds/],
    [[], /mapping/],
    ['x', /mapping/],
  ])('%j is refused, and the message says why', (config, message) => {
    expect(() => provider.parseConfig(config)).toThrow(ConfigError)
    expect(() => provider.parseConfig(config)).toThrow(message)
  })
})

describe('an identity', () => {
  const boot = 'dd6f9625-ea35-4ebd-bb44-bf40b2cf7d10'
  it('is read back as it was written', () => {
    for (const line of [`${boot} 4026532176 5382 115378\n`, `${boot} session 5382 115378\n`]) {
      const init = parseInitFile(line)
      if (init === null) throw new Error(line)
      expect(parseImmutableId(immutableIdOf(init))).toEqual({ kind: 'started', init })
    }
    expect(parseImmutableId('unstarted:t1')).toEqual({ kind: 'unstarted', token: 't1' })
  })
  it.each([
    '',
    'unstarted:',
    `${boot}:1:2`,
    `${boot}:1:1:5`,
    `${boot}:1:0:5`,
    `${boot}:1:-5:5`,
    `${boot}:1:5:5:5`,
    `x:1:5:5`,
    `${boot}:1:5e3:5`,
  ])('that is %j is none', (text) => {
    expect(parseImmutableId(text)).toBeNull()
  })
  it('names its box by ref and attempt, and nothing outside the folder of boxes', () => {
    expect(parseNativeId('abcdefghijk1-12')).toEqual({ ref: 'abcdefghijk1', attemptNumber: 12 })
    for (const text of ['../../../../x-1', 'abcdefghijk1', 'abcdefghijk1-', 'abcdefghijk1-1/..', 'Abcdefghijk1-1', 'abcdefghijk12-1'])
      expect(parseNativeId(text)).toBeNull()
  })
})

describe('who lives in a box', () => {
  const entry = (pid: number, parent: number, changes: Partial<TableEntry> = {}): [number, TableEntry] => [
    pid,
    { pid, parent, session: pid, state: 'S', start: '5', alive: true, namespace: 'host', ref: null, attempt: null, ...changes },
  ]
  const table = (...entries: [number, TableEntry][]): ProcessTable => ({ entries: new Map(entries), denied: 0, incomplete: null })

  it('is who is in its namespace or in one below, whatever their parents', () => {
    const seen = table(
      entry(1, 0),
      entry(10, 1),
      entry(11, 10, { namespace: 'box' }),
      entry(12, 11, { namespace: 'box' }),
      entry(13, 12, { namespace: 'below' }),
      entry(14, 13, { namespace: 'below' }),
      entry(15, 1, { namespace: 'box' }),
      entry(16, 1),
      entry(17, 99, { namespace: null }),
    )
    expect([...namespaceMembers(seen, 'box')].toSorted((a, b) => a - b)).toEqual([11, 12, 13, 14, 15])
  })
  it('is, of a session, who has its recorded and tagged leader, or carries the tags itself', () => {
    const seen = table(
      entry(20, 1, { ref: 'r', attempt: 't' }),
      entry(21, 20, { session: 20 }),
      entry(31, 1, { session: 30, ref: 'r', attempt: 't' }),
      entry(32, 1, { session: 30 }),
      entry(40, 1, { start: '6', ref: 'r', attempt: 't' }),
      // Recorded, alive, and of nobody's box: a record is no proof.
      entry(50, 1),
      entry(51, 50, { session: 50 }),
      entry(52, 50, { session: 50, ref: 'r', attempt: 't' }),
      entry(53, 50, { session: 50, ref: 'other', attempt: 't' }),
    )
    const sessions = [20, 30, 40, 50].map((sid) => ({ sid, start: '5' }))
    const look = lookAtSessions(seen, sessions, { ref: 'r', token: 't' })
    expect([...look.members].toSorted((a, b) => a - b)).toEqual([20, 21, 31, 52])
    expect(look.strays.toSorted((a, b) => a - b)).toEqual([50, 51, 53])
  })
})

describe('where no namespace can be made', () => {
  const impossible = async () => ({ kind: 'impossible', why: 'Operation not permitted' }) as const
  it.skipIf(process.platform !== 'linux')('boxes are sessions, unless that was forbidden', async () => {
    expect(await chooseMode({ mode: 'auto', graceSeconds: 5 }, impossible)).toEqual({ kind: 'mode', mode: 'session', userNamespace: false })
    expect(await chooseMode({ mode: 'namespace', graceSeconds: 5 }, impossible)).toEqual({
      kind: 'unsupported',
      why: expect.stringContaining('Operation not permitted') as string,
    })
  })
  it.skipIf(process.platform === 'linux')('and there is no /proc, nothing is made, and doctor says so', async () => {
    expect(await provider.create(createRequest(provider, {}), context())).toMatchObject({ kind: 'rejected', code: 'provider_unsupported' })
    expect(await provider.doctor({}, context())).toMatchObject([{ level: 'error' }])
  })
})

describe('a create that can not work', () => {
  it.skipIf(process.platform !== 'linux')('is rejected: another installation, or a folder that can not be made', async () => {
    expect(await provider.create(createRequest(provider, {}), context())).toMatchObject({ kind: 'rejected', code: 'installation_mismatch' })
    const file = join(mkdtempSync(join(tmpdir(), 'leasehold-file-')), 'file')
    writeFileSync(file, '')
    const blocked = createProcessProvider({ dataFolder: file })
    expect(await blocked.create(createRequest(blocked, {}), context())).toMatchObject({ kind: 'rejected', code: 'folder_failed' })
    expect((await blocked.doctor({}, context())).find((check) => check.name === 'process: folder')).toMatchObject({ level: 'error' })
    rmSync(join(file, '..'), { recursive: true })
  })
})
