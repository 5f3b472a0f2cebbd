/**
 * One claim's lock across processes: `claim-locks/<lease>.json.lock`. It is an empty SQLite file on which a write
 * transaction is held, so that the kernel itself lets go of it when its holder dies, however that dies: there is no stale
 * lock to judge, and a pid that was used again can't be taken for the holder. Node has no `flock`.
 */
import { closeSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export class ClaimLockTimeout extends Error {
  readonly code = 'claim_locked'
}

export interface HeldLock {
  /** Removes the lock file while it is held: for a claim that is gone for ever. */
  discard: () => void
}

const createEmpty = (file: string): void => {
  try {
    // Exclusive on purpose: closing any other descriptor of a locked file would drop this process's own lock on it.
    closeSync(openSync(file, 'wx', 0o600))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

const inodeOf = (file: string): bigint | null => statSync(file, { bigint: true, throwIfNoEntry: false })?.ino ?? null

/** Takes the lock, or answers null when somebody has it. It is let go by the function returned, or when this process dies. */
export const tryFileLock = async (file: string): Promise<(() => void) | null> => {
  const { DatabaseSync } = await import('node:sqlite')
  createEmpty(file)
  const before = inodeOf(file)
  const database = new DatabaseSync(file, { timeout: 0 })
  try {
    database.exec('BEGIN IMMEDIATE')
  } catch (error) {
    database.close()
    if ((error as { errcode?: number }).errcode === 5) return null
    throw error
  }
  // Its last holder may have discarded the file between our opening and our locking: then it excludes nobody.
  if (before === null || inodeOf(file) !== before) {
    database.close()
    return null
  }
  return () => database.close()
}

/**
 * Runs `work` while no other process, and nothing else in this one, holds the lock. Throws `ClaimLockTimeout` after
 * `timeoutMs` of waiting; the work itself has no limit, it may span a provider's mutation (leases R114).
 */
export const withClaimLock = async <T>(file: string, work: (lock: HeldLock) => Promise<T> | T, timeoutMs = 10_000): Promise<T> => {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  const deadline = performance.now() + timeoutMs
  let release = await tryFileLock(file)
  while (release === null) {
    if (performance.now() > deadline) throw new ClaimLockTimeout(`another process has held ${file} for ${timeoutMs / 1000} s; try again`)
    await sleep(5 + Math.random() * 20)
    release = await tryFileLock(file)
  }
  try {
    return await work({ discard: () => rmSync(file, { force: true }) })
  } finally {
    release()
  }
}
