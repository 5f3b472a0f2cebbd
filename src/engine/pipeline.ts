/**
 * Fetch, lock, process, guarded apply. The database is the queue: due rows are locked in one short transaction, worked on outside of any, and each
 * result is applied only under the fence of its lock. One slow row delays no other: every row is worked on by itself.
 */
import { fairShares, shareAlone } from '../model/fair.ts'
import { anyDue, dueProjects, extendLocks, lockDue, putOffForRate, takeDue, type Locked, type QueueTable } from '../store/due.ts'
import type { Tx } from '../store/store.ts'
import { sql } from 'kysely'
import { errorText } from '../lib/redact.ts'
import { WaitsForBudget } from './budget/waits.ts'
import type { EngineContext } from './context.ts'
import type { PipelineName } from './signals.ts'

/** decisions, Defaults: a lock stands 30 s and is renewed while its row is worked on. */
export const lockMs = 30_000
const renewMs = 10_000
const longestTickMs = 1_000
const batch = 100

/** A row being worked on. `signal` ends when the lock is lost: the next call to a provider then does not happen (I3). */
export interface Held extends Locked {
  signal: AbortSignal
  /** Up to when the lock stands for certain, by the monotonic clock; moved by each renewal. */
  standsUntil?: number
}

/**
 * Asked right before a call that makes or removes something: a process that stood still may have lost its lock without having been told yet (I3). In doubt
 * it has.
 */
export const stillStands = (held: Held): boolean =>
  !held.signal.aborted && performance.now() < (held.standsUntil ?? Number.POSITIVE_INFINITY)

/** What was done to rows in the transaction that took them. */
export interface Taken {
  /** Called once that has committed. */
  committed: () => void
  /** What more there is to do of some. Their locks do not stand: what it writes, it guards by itself. */
  left: readonly { row: Locked; process: (held: Held) => Promise<void> }[]
}

export interface PipelineSpec {
  name: PipelineName
  table: QueueTable
  /** Rows in work at once. High, because most of that time is waiting for providers. */
  capacity: number
  /**
   * Rows that are due and need no work are moved on, without a lock.
   * @returns `lock`: others are due too; `again`: there may be more of the same; `done`: nothing is due any more
   */
  settle?(now: number): Promise<'lock' | 'again' | 'done'>
  /**
   * What needs nothing but the database is done in the transaction that takes the rows, and writes their fences: a crowd costs one commit rather than two. When
   * it throws, the rows are locked and processed, each by itself.
   */
  take?(tx: Tx, rows: readonly Locked[]): Promise<Taken>
  /** Its rows are in no hurry: all that come due within a tick are taken together. */
  patient?: boolean
  /** May throw: what waits for a rate is put off, any other row comes back when its lock ends, and the log has the reason. */
  process(held: Held): Promise<void>
}

export interface Pipeline {
  start(): void
  /** Takes no new rows, and waits until those in work are done, `ms` at most. */
  stop(ms: number): Promise<void>
}

/** @param paused asked before every fetch, with the time by which it would fetch */
export const createPipeline = (context: EngineContext, spec: PipelineSpec, paused: (now: number) => boolean = () => false): Pipeline => {
  const { store, log } = context
  const inWork = new Map<string, { held: Held; abort: AbortController; done: Promise<void> }>()
  let stopping = false
  let renewal: NodeJS.Timeout | undefined
  let loop: Promise<void> = Promise.resolve()
  let rouse: () => void = () => {}
  /** More was due at the last fetch than was taken. */
  let crowded = false
  let lastServed = ''
  let roused = false

  const work = (lock: Locked, standsUntil: number, process = (one: Held): Promise<void> => spec.process(one)): void => {
    // Our own lock on it had ended before it could be renewed: who still works under that one has lost it.
    inWork.get(lock.id)?.abort.abort(new Error('the lock on this row was lost'))
    const abort = new AbortController()
    const held: Held = { ...lock, signal: abort.signal, standsUntil }
    const done = process(held)
      .catch((error: unknown) => {
        if (!(error instanceof WaitsForBudget) || spec.table === 'leases') throw error
        const { table } = spec
        return store.write((tx) => putOffForRate(tx, table, held, error.until))
      })
      .catch((error: unknown) => log.error({ pipeline: spec.name, id: lock.id, error: errorText(error) }, 'a row could not be processed'))
      .finally(() => {
        if (inWork.get(lock.id)?.held === held) inWork.delete(lock.id)
        rouse()
      })
    inWork.set(lock.id, { held, abort, done })
  }

  type Choose = (rowsOf: (limit: number, project?: string) => Promise<Locked[]>) => Promise<Locked[]>

  /** @returns undefined: they could not be taken so */
  const take = async (choose: Choose): Promise<Locked[] | undefined> => {
    if (!spec.take) return undefined
    try {
      const { rows, taken } = await store.write(async (tx) => {
        const chosen = await choose((limit, project) => takeDue(tx, spec.table, limit, project))
        return { rows: chosen, taken: chosen.length === 0 ? undefined : await spec.take?.(tx, chosen) }
      })
      taken?.committed()
      for (const { row, process } of taken?.left ?? []) work(row, Number.POSITIVE_INFINITY, process)
      return rows
    } catch (error) {
      log.debug({ pipeline: spec.name, error: errorText(error) }, 'rows could not be worked on together')
      return undefined
    }
  }

  /** @returns how many were taken */
  const fetchThose = async (choose: Choose): Promise<number> => {
    const taken = await take(choose)
    if (taken) return taken.length
    // Before the database is asked: what the lock's own clock counts from is later.
    const standsUntil = performance.now() + lockMs
    const locked = await store.write((tx) => choose((limit, project) => lockDue(tx, spec.table, context.replicaId, limit, lockMs, project)))
    for (const lock of locked) work(lock, standsUntil)
    return locked.length
  }

  /** The longest due first, whoever's they are. */
  const fetchOldest = async (free: number): Promise<number> => {
    const most = Math.min(free, shareAlone(spec.capacity) - inWork.size)
    const taken = most <= 0 ? 0 : await fetchThose((rowsOf) => rowsOf(most))
    crowded = taken >= most
    return taken
  }

  /** More is due than fits: every project has its turn, however much of another's is due or hangs. */
  const fetchFairly = async (free: number, now: number): Promise<number> => {
    const due = await store.read((session) => dueProjects(session, spec.table, now))
    const counts = new Map<string, number>()
    for (const { held } of inWork.values()) counts.set(held.project ?? '', (counts.get(held.project ?? '') ?? 0) + 1)
    const shares = fairShares(due, counts, free, spec.capacity, lastServed)
    lastServed = shares.at(-1)?.project ?? ''
    const taken = await fetchThose(async (rowsOf) => {
      const rows: Locked[] = []
      for (const { project, limit } of shares) rows.push(...(await rowsOf(limit, project)))
      return rows
    })
    crowded = due.length > 0 && (taken > 0 || shares.length === 0)
    return taken
  }

  /** @returns 0: nothing is due before the next tick */
  const fetch = async (now: number): Promise<number> => {
    const free = Math.min(batch, spec.capacity - inWork.size)
    if (free <= 0) return 0
    if (!(await store.read((session) => anyDue(session, spec.table, now)))) {
      crowded = false
      return 0
    }
    const rest = (await spec.settle?.(now)) ?? 'lock'
    if (rest !== 'lock') return rest === 'again' ? 1 : 0
    const taken = crowded ? 0 : await fetchOldest(free)
    return crowded && taken === 0 ? fetchFairly(free, now) : taken
  }

  const msToNext = async (): Promise<number> => {
    // Whatever is due while it is crowded waits for a place: a row that is done rouses.
    if (spec.patient === true || crowded || inWork.size >= spec.capacity) return longestTickMs
    const now = await store.now()
    const query = sql<{ at: number | null }>`select min(due_at) as at from ${sql.table(spec.table)} where due_at is not null`
    const at = (await store.read((session) => query.execute(session.db))).rows[0]?.at
    return at == null ? longestTickMs : Math.min(longestTickMs, Math.max(1, at - now))
  }

  const wait = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (roused || stopping) return resolve()
      const timer = setTimeout(resolve, ms)
      rouse = () => {
        clearTimeout(timer)
        roused = true
        resolve()
      }
    })

  const run = async (): Promise<void> => {
    let failures = 0
    while (!stopping) {
      roused = false
      rouse = () => {
        roused = true
      }
      try {
        const now = await store.now()
        const standing = paused(now)
        const taken = standing ? 0 : await fetch(now)
        failures = 0
        if (taken > 0) continue
        await wait(standing ? longestTickMs : await msToNext())
      } catch (error) {
        failures++
        log.error({ pipeline: spec.name, error: errorText(error) }, 'the database did not answer; trying again')
        await wait(Math.min(5_000, 100 * 2 ** Math.min(failures, 6)))
      }
    }
  }

  const renew = async (): Promise<void> => {
    const held = [...inWork.values()].map((entry) => entry.held)
    if (held.length === 0) return
    const standsUntil = performance.now() + lockMs
    const kept = await store.write((tx) => extendLocks(tx, spec.table, held, context.replicaId, lockMs))
    for (const entry of inWork.values()) {
      if (!held.includes(entry.held)) continue
      if (kept.has(entry.held.id)) entry.held.standsUntil = standsUntil
      else entry.abort.abort(new Error('the lock on this row was lost'))
    }
  }

  return {
    start() {
      context.signals.onWake(spec.name, () => rouse())
      renewal = setInterval(
        () =>
          void renew().catch((error: unknown) => log.error({ pipeline: spec.name, error: errorText(error) }, 'locks could not be renewed')),
        renewMs,
      )
      loop = run()
    },
    async stop(ms) {
      stopping = true
      rouse()
      await loop
      const finished = Promise.allSettled([...inWork.values()].map((entry) => entry.done))
      const { promise: late, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, ms)
      await Promise.race([finished, late])
      clearTimeout(timer)
      clearInterval(renewal)
    },
  }
}
