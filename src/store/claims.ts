/**
 * Local claim files, one per lease: `<data>/claims/<lease>.json`. A write is a temporary file, fsync, rename, fsync of the
 * folder, all under the claim's lock, and only over the revision that the writer read (leases R107-R111, R114).
 */
import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { hex } from '../lib/ids.ts'
import { checkClaim, sameClaim, type Claim } from '../model/claim.ts'
import { isLeaseId } from '../model/ids.ts'
import { withClaimLock } from './claim-lock.ts'

export const maximumClaimBytes = 1024 * 1024
export const maximumProblems = 100

export type ClaimRead = { kind: 'claim'; claim: Claim } | { kind: 'none' } | { kind: 'bad'; problem: string }
export interface ClaimProblem {
  file: string
  problem: string
}
export interface ClaimList {
  claims: Claim[]
  /** At most 100. */
  problems: ClaimProblem[]
  problemsOmitted: number
}

/** Someone else wrote or removed the claim since it was read: nothing was changed. */
export class ClaimChanged extends Error {
  readonly code = 'claim_changed'
}

export interface ClaimStore {
  folder: string
  /** Reads without a lock. */
  read(leaseID: string): ClaimRead
  /** Takes no lock and creates nothing; what is wrong with one file hides no other (leases R115). */
  list(): ClaimList
  /** Lease ids that have a claim file, unread. */
  ids(): string[]
  /** Writes over exactly `expected` (null: over nothing) and answers what is stored, with its new revision. Throws `ClaimChanged`. */
  write(expected: Claim | null, next: Omit<Claim, 'revision'>): Promise<Claim>
  /** Removes exactly this claim, compared whole (leases R111). False: it was gone already. Throws `ClaimChanged`. */
  remove(expected: Claim): Promise<boolean>
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code

export const openClaims = (data: string): ClaimStore => {
  const folder = join(data, 'claims')
  const fileOf = (leaseID: string): string => {
    if (!isLeaseId(leaseID)) throw new TypeError(`not a lease id: ${leaseID}`)
    return join(folder, `${leaseID}.json`)
  }
  const lockOf = (leaseID: string): string => join(data, 'claim-locks', `${leaseID}.json.lock`)
  const read = (leaseID: string): ClaimRead => readClaimFile(fileOf(leaseID), leaseID)
  const expectUnchanged = (leaseID: string, expected: Claim | null): boolean => {
    const stored = read(leaseID)
    if (stored.kind === 'bad') throw new ClaimChanged(`the claim of ${leaseID} ${stored.problem}; nothing was changed`)
    if (stored.kind === 'none') return expected === null
    if (expected === null || !sameClaim(stored.claim, expected)) {
      throw new ClaimChanged(`the claim of ${leaseID} was changed by another process; nothing was changed by this one`)
    }
    return true
  }
  return {
    folder,
    read,
    list: () => listFolder(folder),
    ids: () =>
      namesIn(folder)
        .filter((name) => name.endsWith('.json') && isLeaseId(name.slice(0, -5)))
        .map((name) => name.slice(0, -5)),
    write: (expected, next) =>
      withClaimLock(lockOf(next.leaseID), () => {
        if (!expectUnchanged(next.leaseID, expected)) {
          throw new ClaimChanged(`the claim of ${next.leaseID} was removed by another process; it was not written again`)
        }
        const claim: Claim = { ...next, revision: hex(16) }
        const check = checkClaim(claim, next.leaseID)
        if (!check.ok) throw new TypeError(`the claim to be written ${check.problem}`)
        replaceFile(fileOf(next.leaseID), `${JSON.stringify(claim, null, 2)}\n`)
        return claim
      }),
    remove: (expected) =>
      withClaimLock(lockOf(expected.leaseID), (lock) => {
        if (!expectUnchanged(expected.leaseID, expected)) {
          lock.discard()
          return false
        }
        rmSync(fileOf(expected.leaseID))
        syncFolder(folder)
        lock.discard()
        return true
      }),
  }
}

const readClaimFile = (file: string, leaseID: string): ClaimRead => {
  let descriptor: number
  try {
    // NOFOLLOW: a link could name a file of someone else's; NONBLOCK: a pipe must not hang a listing.
    descriptor = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return { kind: 'none' }
    return { kind: 'bad', problem: codeOf(error) === 'ELOOP' ? 'is a symbolic link' : `can't be opened (${codeOf(error)})` }
  }
  try {
    const facts = fstatSync(descriptor)
    if (!facts.isFile()) return { kind: 'bad', problem: 'is not a regular file' }
    if (facts.size > maximumClaimBytes) return { kind: 'bad', problem: 'is larger than 1 MiB' }
    const bytes = Buffer.allocUnsafe(facts.size + 1)
    let length = 0
    for (let got = -1; got !== 0 && length < bytes.length; length += got)
      got = readSync(descriptor, bytes, length, bytes.length - length, null)
    if (length > facts.size) return { kind: 'bad', problem: 'grew while it was read' }
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length))
    const check = checkClaim(JSON.parse(text), leaseID)
    return check.ok ? { kind: 'claim', claim: check.claim } : { kind: 'bad', problem: check.problem }
  } catch (error) {
    if (error instanceof SyntaxError) return { kind: 'bad', problem: 'is not JSON' }
    if (codeOf(error) === 'ERR_ENCODING_INVALID_ENCODED_DATA') return { kind: 'bad', problem: 'is not UTF-8' }
    return { kind: 'bad', problem: `can't be read (${codeOf(error) ?? 'unknown error'})` }
  } finally {
    closeSync(descriptor)
  }
}

const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder).toSorted()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** What a writer of ours leaves for a moment, or for good if it dies just then. */
const temporaryPattern = /^\.lh_[0-9a-f]{12}\.json\.[0-9a-f]{16}\.tmp$/

const listFolder = (folder: string): ClaimList => {
  const list: ClaimList = { claims: [], problems: [], problemsOmitted: 0 }
  const report = (file: string, problem: string): void => {
    if (list.problems.length < maximumProblems) list.problems.push({ file, problem })
    else list.problemsOmitted += 1
  }
  let names: string[]
  try {
    names = namesIn(folder)
  } catch (error) {
    report(folder, `can't be listed (${codeOf(error) ?? 'unknown error'})`)
    return list
  }
  for (const name of names) {
    if (temporaryPattern.test(name)) continue
    const file = join(folder, name)
    const leaseID = name.replace(/\.json$/, '')
    if (!name.endsWith('.json') || !isLeaseId(leaseID)) {
      report(file, 'has a name that no claim has')
      continue
    }
    const read = readClaimFile(file, leaseID)
    if (read.kind === 'claim') list.claims.push(read.claim)
    else if (read.kind === 'bad') report(file, read.problem)
  }
  return list
}

const syncFolder = (folder: string): void => {
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

const replaceFile = (file: string, text: string): void => {
  const folder = dirname(file)
  // A folder made just now is only durable once its parent is synced.
  const made = mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (made !== undefined) for (let at = folder; at.startsWith(dirname(made)) && at !== dirname(at); at = dirname(at)) syncFolder(at)
  const base = file.slice(folder.length + 1)
  // Under the claim's lock nobody else writes this claim: what lies there was left by a writer that died.
  for (const name of namesIn(folder))
    if (temporaryPattern.test(name) && name.startsWith(`.${base}.`)) rmSync(join(folder, name), { force: true })
  const temporary = join(folder, `.${base}.${hex(8)}.tmp`)
  const descriptor = openSync(temporary, 'wx', 0o600)
  try {
    writeFileSync(descriptor, text)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  renameSync(temporary, file)
  syncFolder(folder)
}
