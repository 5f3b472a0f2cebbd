import type { Fault } from '../model/prune/fault.ts'

export type Loaded<T> = { ok: true; value: T; digest: string } | { ok: false; faults: readonly Fault[] }

/** What stands, and what the newest try said. */
export interface Standing<T> {
  /** Null: nothing has ever loaded. */
  good: { value: T; digest: string; loadedAtMs: number } | null
  /** Of the newest try; empty: it loaded. */
  faults: readonly Fault[]
  /** Something stands, and what is in its file now does not load. */
  stale: boolean
  /** Whether the newest try changed what stands. */
  changed: boolean
}

/**
 * Keeps the last that loaded when a newer one does not (prune 2.1): a broken file, or a repository that does not answer, changes nothing that
 * runs, and is never read as "there is nothing". Whether the newest try loaded, which a sweep needs (prune R20), is in `faults`.
 */
export const keepLastGood = <T>(
  load: () => Promise<Loaded<T>>,
): { refresh: (nowMs: number) => Promise<Standing<T>>; standing: () => Standing<T> } => {
  let standing: Standing<T> = { good: null, faults: [], stale: false, changed: false }
  return {
    standing: () => standing,
    refresh: async (nowMs) => {
      const { good } = standing
      const loaded = await load()
      if (!loaded.ok) standing = { good, faults: loaded.faults, stale: good !== null, changed: false }
      else {
        const changed = good?.digest !== loaded.digest
        standing = {
          good: changed ? { value: loaded.value, digest: loaded.digest, loadedAtMs: nowMs } : good,
          faults: [],
          stale: false,
          changed,
        }
      }
      return standing
    },
  }
}
