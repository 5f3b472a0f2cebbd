/**
 * The rate budgets of accounts as one replica uses them: it takes what a second may need at once, so a call costs no write of its own, and where nothing limits
 * an account it costs one small read a second. Replicas share what the database holds, and so what any of them learns.
 */
import {
  burstOf,
  isLimited,
  learn,
  operationClasses,
  reserve,
  type Budget,
  type OperationClass,
  type RateReport,
} from '../../model/budget.ts'
import { lockBudget, readBudget, saveBudget } from '../../store/budgets.ts'
import type { Store } from '../../store/store.ts'
import { WaitsForBudget } from './waits.ts'

const freshMs = 1_000
/** A granted call that was not made for so long goes back. */
const keepMs = 2_000
const observedSeconds = 5
const mostCounted = 10_000
/** Most waiters of one account are told the same moment: so far apart they come back. */
const spreadMs = 1_000

export interface Account {
  provider: string
  scope: string
}

export interface Budgets {
  /**
   * Asked before a step that will call: it takes one call of the class.
   * @throws WaitsForBudget
   */
  admit(account: Account, operation: OperationClass): Promise<void>
  /**
   * A call that is made now, by a step that was let in: beyond what it took, on credit.
   * @throws WaitsForBudget while the provider wants to be left alone
   */
  charge(account: Account, operation: OperationClass): void
  /** One more call of a step that goes on in any case. @returns ms to pause before it; 0: it is within its rate */
  pace(account: Account, operation: OperationClass): Promise<number>
  /** @returns the database's time in ms when calls of this class go on; null: they go on now */
  heard(account: Account, operation: OperationClass, report: RateReport): Promise<number | null>
}

type PerClass<T> = Record<OperationClass, T>
const perClass = <T>(make: () => T): PerClass<T> =>
  Object.fromEntries(operationClasses.map((operation) => [operation, make()])) as PerClass<T>

interface Local {
  budget: Budget
  /** By the monotonic clock; -Infinity: never. */
  readAt: number
  /** What the database's clock read then. */
  now: number
  /** Granted and not made yet; below 0: made on credit. */
  left: PerClass<number>
  leftSince: PerClass<number>
  /** Taken by steps that were let in, and not made yet. */
  taken: PerClass<number>
  /** The database's time. */
  waitsUntil: PerClass<number>
  made: PerClass<number[]>
  turn: Promise<unknown>
}

const newLocal = (): Local => ({
  budget: {},
  readAt: Number.NEGATIVE_INFINITY,
  now: 0,
  left: perClass(() => 0),
  leftSince: perClass(() => 0),
  taken: perClass(() => 0),
  waitsUntil: perClass(() => 0),
  made: perClass(() => []),
  turn: Promise.resolve(),
})

/** @param limitOf the setting of a provider: calls a second in one account; null: none */
export const createBudgets = (store: Store, limitOf: (provider: string) => number | null): Budgets => {
  const locals = new Map<string, Local>()
  const localOf = ({ provider, scope }: Account): Local => {
    const key = `${provider} ${scope}`
    const known = locals.get(key) ?? newLocal()
    locals.set(key, known)
    return known
  }
  /** One after the other for each account, so that many callers share one reservation. */
  const inTurn = <T>(local: Local, work: () => Promise<T>): Promise<T> => {
    const result = local.turn.then(work)
    local.turn = result.catch(() => {})
    return result
  }
  const isFresh = (local: Local): boolean => performance.now() - local.readAt < freshMs
  const keep = (local: Local, budget: Budget, now: number): void => {
    local.budget = budget
    local.readAt = performance.now()
    local.now = now
  }
  const limits = (local: Local, account: Account, operation: OperationClass): boolean =>
    isLimited(local.budget, operation, limitOf(account.provider), local.now)

  /** @returns true: a call was taken; false: nothing limits it */
  const take = async (local: Local, account: Account, operation: OperationClass): Promise<boolean> => {
    if (!isFresh(local)) keep(local, await store.read((session) => readBudget(session, account.provider, account.scope)), await store.now())
    if (!limits(local, account, operation)) return false
    const kept = performance.now() - local.leftSince[operation] < keepMs
    if (kept && local.left[operation] >= 1) {
      local.left[operation]--
      return true
    }
    const now = await store.now()
    if (local.waitsUntil[operation] > now) throw new WaitsForBudget(local.waitsUntil[operation])
    const returned = local.left[operation]
    const limit = limitOf(account.provider)
    const answer = await store.write(async (tx) => {
      const before = await lockBudget(tx, account.provider, account.scope)
      const rate = before[operation]?.rate ?? limit ?? 1
      const reserved = reserve(before, operation, Math.max(1, Math.ceil(rate)), limit, tx.now, returned)
      await saveBudget(tx, account.provider, account.scope, reserved.budget)
      return { ...reserved, now: tx.now }
    })
    keep(local, answer.budget, answer.now)
    local.left[operation] = answer.granted
    local.leftSince[operation] = performance.now()
    if (answer.until !== null) {
      local.waitsUntil[operation] = answer.until
      throw new WaitsForBudget(answer.until + Math.floor(Math.random() * Math.min(spreadMs, answer.until - answer.now)))
    }
    local.left[operation]--
    return true
  }

  const observed = (local: Local, operation: OperationClass): number => {
    const since = performance.now() - observedSeconds * 1000
    local.made[operation] = local.made[operation].filter((at) => at > since)
    const made = local.made[operation]
    const span = Math.max(1, (performance.now() - (made[0] ?? performance.now())) / 1000)
    return made.length / span
  }

  const count = (local: Local, operation: OperationClass): void => {
    if (local.made[operation].length >= mostCounted) observed(local, operation)
    if (local.made[operation].length < mostCounted) local.made[operation].push(performance.now())
  }

  return {
    async admit(account, operation) {
      const local = localOf(account)
      if (isFresh(local) && !limits(local, account, operation)) return
      const taken = await inTurn(local, () => take(local, account, operation))
      // A step that was let in may find that it has nothing to call: what it took is the next one's, within bounds.
      const rate = local.budget[operation]?.rate ?? limitOf(account.provider)
      if (taken) local.taken[operation] = Math.min(burstOf(rate ?? 0), local.taken[operation] + 1)
    },
    charge(account, operation) {
      const local = localOf(account)
      count(local, operation)
      if (local.taken[operation] >= 1) {
        local.taken[operation]--
        return
      }
      const blocked = local.budget[operation]?.blockedUntil ?? 0
      // By the database's clock as it was read, moved on by the monotonic one.
      if (blocked > local.now + (performance.now() - local.readAt)) throw new WaitsForBudget(blocked)
      if (limits(local, account, operation)) local.left[operation]--
    },
    async pace(account, operation) {
      const local = localOf(account)
      count(local, operation)
      if (isFresh(local) && !limits(local, account, operation)) return 0
      try {
        await inTurn(local, () => take(local, account, operation))
        return 0
      } catch (error) {
        if (!(error instanceof WaitsForBudget)) throw error
        local.left[operation]--
        return Math.max(0, error.until - (await store.now()))
      }
    },
    async heard(account, operation, report) {
      const local = localOf(account)
      const now = await store.now()
      // Most answers have room left and teach nothing.
      if (!report.throttled && learn(local.budget, operation, report, observed(local, operation), now) === local.budget) return null
      return inTurn(local, async () => {
        const answer = await store.write(async (tx) => {
          const before = await lockBudget(tx, account.provider, account.scope)
          const budget = learn(before, operation, report, observed(local, operation), tx.now)
          if (budget !== before) await saveBudget(tx, account.provider, account.scope, budget)
          return { budget, now: tx.now }
        })
        keep(local, answer.budget, answer.now)
        if (report.throttled) {
          local.left[operation] = Math.min(0, local.left[operation])
          local.taken[operation] = 0
        }
        const until = answer.budget[operation]?.blockedUntil ?? 0
        return until > answer.now ? until : null
      })
    },
  }
}
