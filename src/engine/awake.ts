/**
 * Downtime is not idleness (decisions 1). An alive mark is stored every 10 s; idle deadlines that fell into a time without marks are moved before the
 * API answers and before expiry runs, whether the process was down, stopped or suspended. A clock that runs away pauses expiry.
 */
import { forgiveness } from '../model/clocks.ts'
import { errorText } from '../lib/redact.ts'
import { appendEvents } from '../store/events.ts'
import { forgiveIdleness } from '../store/leases.ts'
import { lastAliveMark, markAlive } from '../store/replicas.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Log } from './context.ts'
import { event } from './record.ts'
import { buryDead, register, type Self } from './replica.ts'

const markEveryMs = 10_000
const gapMs = 60_000
const jumpMs = 300_000

export interface Awake {
  /** Registers this process and forgives the downtime before it. */
  start(): Promise<void>
  stop(): Promise<void>
  /** Resolves at once while marks are fresh; after a stall it marks first. */
  awake(): Promise<void> | undefined
  /**
   * Why expiry stands still, or null.
   * @param now the database's time, if just read: a clock that jumped is then noticed before anything is done by it, not at the next mark
   */
  paused(now?: number): string | null
  /** Reference clock minus the clock by which we work, in ms. */
  skewMs(): number
}

const forgive = async (tx: Tx, last: number | null, self: Self): Promise<void> => {
  const gap = forgiveness(last, tx.now)
  if (gap === null || last === null) return
  const moved = await forgiveIdleness(tx, gap.from, gap.to, gap.until)
  if (moved === 0) return
  const payload = { gapSeconds: Math.round((tx.now - last) / 1000), moved }
  await appendEvents(tx, [
    event(tx, 'clock.downtime', payload, { project: null, targets: [{ type: 'replica', id: self.id, name: self.host }] }),
  ])
}

/** @param watch false: only the marks of start and stop; for tests that move the clock themselves */
export const createAwake = (store: Store, self: Self, log: Log, watch: boolean): Awake => {
  let timer: NodeJS.Timeout | undefined
  let markedAt = performance.now()
  let ownMark: number | null = null
  let marking: Promise<void> | undefined
  let pausedBecause: string | null = null
  let skew = 0
  // On SQLite we work by the monotonic clock and watch the wall clock; on PostgreSQL we work by its clock and watch that.
  const reference = async (): Promise<number> => (store.dialect === 'sqlite' ? Date.now() : store.now())
  let start = { reference: 0, monotonic: 0 }

  const aheadMs = (now: number): number =>
    (store.dialect === 'sqlite' ? Date.now() : now) - start.reference - (performance.now() - start.monotonic)
  const jumpText = (ahead: number): string =>
    `the ${store.dialect === 'sqlite' ? 'wall' : "database's"} clock ran ${Math.round(ahead / 1000)} s ahead of the monotonic one`

  /** Says once that a clock jumped, or that the clocks agree again. @returns why expiry stands still, to be believed once this is committed */
  const watchClocks = async (tx: Tx): Promise<string | null> => {
    skew = Date.now() - tx.now
    const ahead = aheadMs(tx.now)
    const about = { project: null, targets: [{ type: 'replica', id: self.id, name: self.host }] }
    if (ahead > jumpMs && pausedBecause === null) {
      log.error({ aheadMs: ahead }, 'a clock jumped; expiry is paused')
      await appendEvents(tx, [event(tx, 'clock.jumped', { seconds: Math.round(ahead / 1000) }, about)])
      return jumpText(ahead)
    }
    if (ahead > jumpMs || pausedBecause === null) return pausedBecause
    await appendEvents(tx, [event(tx, 'clock.agreed', {}, about)])
    return null
  }

  const mark = (): Promise<void> => {
    marking ??= store
      .write(async (tx) => {
        const others = await lastAliveMark(tx, self.id)
        const last = others === null ? ownMark : Math.max(others, ownMark ?? 0)
        if (last !== null && tx.now - last > gapMs) await forgive(tx, last, self)
        const why = await watchClocks(tx)
        await markAlive(tx, self.id, skew)
        await buryDead(tx, self)
        return { now: tx.now, why }
      })
      .then(({ now, why }) => {
        pausedBecause = why
        ownMark = now
        markedAt = performance.now()
      })
      .finally(() => {
        marking = undefined
      })
    return marking
  }
  const stalled = (): boolean => watch && performance.now() - markedAt > gapMs

  return {
    async start() {
      start = { reference: await reference(), monotonic: performance.now() }
      ownMark = await store.write(async (tx) => {
        await buryDead(tx, self)
        await forgive(tx, await lastAliveMark(tx, self.id), self)
        skew = Date.now() - tx.now
        await register(tx, self, skew)
        return tx.now
      })
      markedAt = performance.now()
      if (watch)
        timer = setInterval(
          () => void mark().catch((error: unknown) => log.error({ error: errorText(error) }, 'the alive mark could not be stored')),
          markEveryMs,
        )
    },
    async stop() {
      clearInterval(timer)
      await marking?.catch(() => {})
      await store.write(async (tx) => {
        await markAlive(tx, self.id, skew)
        await tx.db.updateTable('replicas').set({ stopped_at: tx.now }).where('id', '=', self.id).execute()
      })
    },
    awake: () => (stalled() ? mark() : undefined),
    paused: (now) => {
      if (stalled()) return 'no alive mark for over 60 s: deadlines are moved first'
      if (pausedBecause !== null || !watch || now === undefined) return pausedBecause
      const ahead = aheadMs(now)
      return ahead > jumpMs ? jumpText(ahead) : null
    },
    skewMs: () => skew,
  }
}
