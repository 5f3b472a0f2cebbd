import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { claimUse, type Claim } from '../../src/model/claim.ts'
import { withClaimLock } from '../../src/store/claim-lock.ts'
import { ClaimChanged, openClaims, type ClaimStore } from '../../src/store/claims.ts'

const lease = 'lh_0123456789ab'
const fresh = (changes: Partial<Claim> = {}): Omit<Claim, 'revision'> => ({
  leaseID: lease,
  slug: 'brave-otter',
  provider: 'process',
  cloudID: null,
  cloudImmutableID: null,
  providerScope: null,
  repoRoot: '/repo',
  claimedAt: '2030-01-01T00:00:00Z',
  lastUsedAt: '2030-01-01T00:00:00Z',
  idleTimeoutSeconds: 1800,
  labels: { state: 'provisioning' },
  coordinator: 'http://127.0.0.1:7400',
  createAttemptID: null,
  ...changes,
})

let data: string
let claims: ClaimStore
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'leasehold-claims-'))
  claims = openClaims(data)
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)
const stored = (): Claim => {
  const read = claims.read(lease)
  if (read.kind !== 'claim') throw new Error(JSON.stringify(read))
  return read.claim
}

/** Runs a script in a process of its own and answers what it printed. */
const inProcess = (script: string): { output: Promise<string>; child: ReturnType<typeof spawn> } => {
  const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', script, data], {
    cwd: join(import.meta.dirname, '../..'),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const output = (async () => {
    let text = ''
    for await (const chunk of child.stdout) text += chunk
    return text
  })()
  return { output, child }
}

describe('a claim file', () => {
  it('is private, is whole, and gets a new revision on every write (leases R107, R108, R109)', async () => {
    const first = await claims.write(null, fresh())
    const second = await claims.write(first, { ...first, slug: 'other' })
    expect(first.revision).toMatch(/^[0-9a-f]{32}$/)
    expect(second.revision).not.toBe(first.revision)
    expect(stored()).toEqual(second)
    expect(modeOf(join(data, 'claims', `${lease}.json`))).toBe('600')
    expect(modeOf(join(data, 'claims'))).toBe('700')
    expect(modeOf(join(data, 'claim-locks'))).toBe('700')
    expect(modeOf(join(data, 'claim-locks', `${lease}.json.lock`))).toBe('600')
    expect(readdirSync(join(data, 'claims'))).toEqual([`${lease}.json`])
  })

  it('is not overwritten by one who read an older revision (leases R114)', async () => {
    const first = await claims.write(null, fresh())
    const second = await claims.write(first, { ...first, labels: { state: 'ready' } })
    await expect(claims.write(first, { ...first, labels: { state: 'provisioning' } })).rejects.toThrow(ClaimChanged)
    await expect(claims.write(null, fresh())).rejects.toThrow(ClaimChanged)
    expect(stored()).toEqual(second)
  })

  it('is not written again after it was removed', async () => {
    const first = await claims.write(null, fresh())
    await claims.remove(first)
    await expect(claims.write(first, first)).rejects.toThrow(ClaimChanged)
    expect(claims.read(lease)).toEqual({ kind: 'none' })
  })

  it('is removed only while it is exactly what was read (leases R111)', async () => {
    const first = await claims.write(null, fresh())
    const second = await claims.write(first, { ...first, repoRoot: '/elsewhere' })
    await expect(claims.remove(first)).rejects.toThrow(ClaimChanged)
    // The same revision does not make up for another content.
    await expect(claims.remove({ ...second, slug: 'x' })).rejects.toThrow(ClaimChanged)
    expect(stored()).toEqual(second)
    expect(await claims.remove(second)).toBe(true)
    expect(await claims.remove(second)).toBe(false)
    expect(readdirSync(join(data, 'claim-locks'))).toEqual([])
  })

  it('sweeps away what a writer of this lease left when it died, and nothing of another lease', async () => {
    const first = await claims.write(null, fresh())
    writeFileSync(join(data, 'claims', `.${lease}.json.0123456789abcdef.tmp`), '{')
    writeFileSync(join(data, 'claims', '.lh_ffffffffffff.json.0123456789abcdef.tmp'), '{')
    expect(claims.list()).toMatchObject({ claims: [first], problems: [] })
    await claims.write(first, first)
    expect(readdirSync(join(data, 'claims')).toSorted()).toEqual(['.lh_ffffffffffff.json.0123456789abcdef.tmp', `${lease}.json`])
  })
})

describe('whose claim it is', () => {
  const claim: Claim = { ...fresh(), revision: '0'.repeat(32) }
  it('refuses another repository, and moves only by intent (leases R110)', () => {
    expect(claimUse(claim, '/repo', 'use')).toEqual({ kind: 'ours' })
    expect(claimUse(claim, '/other', 'use')).toEqual({ kind: 'refused', owner: '/repo' })
    expect(claimUse(claim, '/other', 'reclaim')).toEqual({ kind: 'move', from: '/repo' })
  })
})

describe('the list of claims', () => {
  it('creates nothing and takes no lock (leases R115)', async () => {
    expect(claims.list()).toEqual({ claims: [], problems: [], problemsOmitted: 0 })
    expect(readdirSync(data)).toEqual([])
    const claim = await claims.write(null, fresh())
    const lock = join(data, 'claim-locks', `${lease}.json.lock`)
    await withClaimLock(lock, () => {
      expect(claims.list().claims).toEqual([claim])
    })
  })

  it('shows the good ones beside every kind of bad one (leases R115)', async () => {
    const good = await claims.write(null, fresh())
    const folder = join(data, 'claims')
    const put = (id: string, text: string | Buffer): void => writeFileSync(join(folder, `lh_${id}.json`), text)
    put('000000000001', '{')
    put('000000000002', Buffer.from([0x22, 0xff, 0x22]))
    put('000000000003', JSON.stringify(good))
    put('000000000004', ' '.repeat(1024 * 1024 + 1))
    mkdirSync(join(folder, 'lh_000000000005.json'))
    symlinkSync(join(folder, `${lease}.json`), join(folder, 'lh_000000000006.json'))
    writeFileSync(join(folder, 'notes.txt'), '')
    put('000000000007', JSON.stringify({ ...good, leaseID: 'lh_000000000007', future: 1 }))
    put('000000000008', JSON.stringify({ ...good, leaseID: 'lh_000000000008', revision: undefined }))
    put('000000000009', '[]')
    const list = claims.list()
    expect(list.claims).toEqual([good])
    expect(list.problems.map(({ file, problem }) => [file.slice(folder.length + 1), problem])).toEqual([
      ['lh_000000000001.json', 'is not JSON'],
      ['lh_000000000002.json', 'is not UTF-8'],
      ['lh_000000000003.json', `says that it is of lease ${lease}`],
      ['lh_000000000004.json', 'is larger than 1 MiB'],
      ['lh_000000000005.json', 'is not a regular file'],
      ['lh_000000000006.json', 'is a symbolic link'],
      ['lh_000000000007.json', 'has an unknown field "future"'],
      ['lh_000000000008.json', 'lacks the field revision'],
      ['lh_000000000009.json', 'is not a JSON object'],
      ['notes.txt', 'has a name that no claim has'],
    ])
  })

  it('names at most 100 problems, and counts the rest', () => {
    mkdirSync(join(data, 'claims'))
    for (let n = 0; n < 103; n += 1) writeFileSync(join(data, 'claims', `bad-${n}`), '')
    const list = claims.list()
    expect(list.problems).toHaveLength(100)
    expect(list.problemsOmitted).toBe(3)
  })

  it('reports a folder that can not be listed instead of an empty one', () => {
    writeFileSync(join(data, 'claims'), '')
    expect(claims.list().problems).toEqual([{ file: join(data, 'claims'), problem: "can't be listed (ENOTDIR)" }])
  })
})

describe('the lock of a claim', () => {
  const increment = `
    import { openClaims, ClaimChanged } from './src/store/claims.ts'
    const claims = openClaims(process.argv[1])
    for (let done = 0; done < 15; ) {
      const read = claims.read('${lease}')
      try {
        await claims.write(read.claim, { ...read.claim, idleTimeoutSeconds: read.claim.idleTimeoutSeconds + 1 })
        done += 1
      } catch (error) {
        if (!(error instanceof ClaimChanged)) throw error
      }
    }
    console.log('done')`

  it('lets no update of several processes be lost (leases R109)', async () => {
    await claims.write(null, fresh({ idleTimeoutSeconds: 0 }))
    const runs = [1, 2, 3, 4].map(() => inProcess(increment))
    expect(await Promise.all(runs.map(({ output }) => output))).toEqual(Array(4).fill('done\n'))
    expect(stored().idleTimeoutSeconds).toBe(60)
  }, 30_000)

  it('is let go of when its holder is killed', async () => {
    const lock = join(data, 'claim-locks', `${lease}.json.lock`)
    const { child } = inProcess(`
      import { withClaimLock } from './src/store/claim-lock.ts'
      await withClaimLock(${JSON.stringify(lock)}, async () => {
        process.stdout.write('held')
        await new Promise((resolve) => process.stdin.on('data', resolve))
      })`)
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    await expect(withClaimLock(lock, () => 'entered', 100)).rejects.toThrow(/another process has held/)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(await withClaimLock(lock, () => 'entered', 2000)).toBe('entered')
  }, 15_000)

  it('excludes within one process too', async () => {
    const lock = join(data, 'claim-locks', `${lease}.json.lock`)
    await withClaimLock(lock, async () => {
      await expect(withClaimLock(lock, () => 'entered', 50)).rejects.toThrow(/another process/)
    })
    expect(existsSync(lock)).toBe(true)
    expect(readFileSync(lock)).toHaveLength(0)
  })
})
