/**
 * How many calls an account gets: a bucket for the whole of it, where a setting limits it, and one for each class of operations that its provider has
 * throttled. A throttled answer halves the class's rate, quiet gives it back bit by bit. Creates keep a share of the whole that nothing else can use up.
 */
export const operationClasses = ['create', 'read', 'delete'] as const
/** `read` is every call that neither makes nor removes anything. */
export type OperationClass = (typeof operationClasses)[number]

/** What an answer says of the account's rate: a refusal, or what its headers tell. */
export interface RateReport {
  /** It was refused for its rate, and nothing was done. */
  throttled: boolean
  /** When the provider says to come again, in ms; null: it does not say. */
  retryAfterMs: number | null
  /** Of the window that the call fell into: how many calls it has, how many are left, and how long it lasts from now on, in ms. */
  limit: number | null
  remaining: number | null
  resetMs: number | null
}

export interface Bucket {
  /** Calls a second; null: as many as anybody wants. */
  rate: number | null
  /** Calls saved up; below 0: made on credit. */
  tokens: number
  /** ms: up to when `tokens` is counted. */
  at: number
  /** ms: no call before. */
  blockedUntil: number | null
  /** ms */
  throttledAt: number | null
  /** Since its rate was last free. */
  throttles: number
  /** The rate at which it was throttled. */
  peak: number | null
}
/** `all` is that of the whole account. */
export type BucketName = OperationClass | 'all'
/** A bucket that is missing limits nothing. */
export type Budget = Readonly<Partial<Record<BucketName, Bucket>>>

/** Of everything but creates, this share of the account's bucket is out of reach. */
export const createShare = 0.25
/** A bucket saves up what this time gives, and goes into debt no further. */
const burstSeconds = 2
const smallestBurst = 2
const slowest = 0.05
/** Where fewer calls than that were made when it was throttled, others made them: it begins to slow down from here. */
const leastPeak = 10
/** Of the rate at which it was throttled, given back in each second without another throttled answer. */
const regainedASecond = 0.005
/** Answers to calls that were under way together count as one. */
const sameMomentMs = 1_000
const longestPauseMs = 60_000

export const burstOf = (rate: number): number => Math.max(smallestBurst, rate * burstSeconds)

const free = (now: number): Bucket => ({
  rate: null,
  tokens: 0,
  at: now,
  blockedUntil: null,
  throttledAt: null,
  throttles: 0,
  peak: null,
})

/** As it is at `now`: refilled, and with what quiet has given back. Past twice the rate at which it was throttled nothing limits it any more. */
export const refilled = (bucket: Bucket, now: number): Bucket => {
  const { rate, peak, throttledAt } = bucket
  if (rate === null) return { ...bucket, at: now }
  const seconds = Math.max(0, now - bucket.at) / 1000
  const regained = peak === null || throttledAt === null ? 0 : peak * regainedASecond * seconds
  const grown = rate + regained
  if (peak !== null && grown >= 2 * peak && (bucket.blockedUntil ?? 0) <= now) return free(now)
  const tokens = Math.min(burstOf(grown), bucket.tokens + ((rate + grown) / 2) * seconds)
  return { ...bucket, rate: grown, tokens, at: Math.max(now, bucket.at) }
}

const refilledAll = (budget: Budget, limit: number | null, now: number): Record<BucketName, Bucket> => {
  const of = (name: BucketName): Bucket => refilled(budget[name] ?? free(now), now)
  const whole = budget.all ?? { ...free(now), tokens: burstOf(limit ?? 0) }
  const all = refilled({ ...whole, rate: limit, peak: null }, now)
  return { all, create: of('create'), read: of('read'), delete: of('delete') }
}

/** What of the account's bucket this class leaves to others. */
const keptFrom = (operation: OperationClass, all: Bucket): number =>
  operation === 'create' || all.rate === null ? 0 : burstOf(all.rate) * createShare

/** Does anything stand between a call of this class and its provider? @param limit the setting: calls a second of the whole account */
export const isLimited = (budget: Budget, operation: OperationClass, limit: number | null, now: number): boolean => {
  const own = budget[operation]
  if (limit !== null) return true
  return own !== undefined && (refilled(own, now).rate !== null || (own.blockedUntil ?? 0) > now)
}

export interface Reserved {
  budget: Budget
  /** Calls that may be made. */
  granted: number
  /** ms: when the next one can be granted; null: some were. */
  until: number | null
}

/**
 * Up to `most` calls of a class, at once.
 * @param returned calls that were granted before and not made; below 0: made without having been granted
 */
export const reserve = (
  budget: Budget,
  operation: OperationClass,
  most: number,
  limit: number | null,
  now: number,
  returned = 0,
): Reserved => {
  const buckets = refilledAll(budget, limit, now)
  const both = [buckets.all, buckets[operation]]
  for (const bucket of both)
    if (bucket.rate !== null) {
      const burst = burstOf(bucket.rate)
      bucket.tokens = Math.max(-burst, Math.min(burst, bucket.tokens + returned))
    }
  const blocked = Math.max(...both.map((one) => one.blockedUntil ?? 0))
  if (blocked > now) return { budget: buckets, granted: 0, until: blocked }
  const kept = keptFrom(operation, buckets.all)
  const within = (bucket: Bucket): number => (bucket.rate === null ? most : bucket.tokens - (bucket === buckets.all ? kept : 0))
  const granted = Math.max(0, Math.floor(Math.min(most, ...both.map(within)) + 1e-9))
  if (granted > 0) {
    for (const bucket of both) if (bucket.rate !== null) bucket.tokens -= granted
    return { budget: buckets, granted, until: null }
  }
  const waits = both.map((bucket) => (bucket.rate === null ? 0 : ((1 - within(bucket)) / bucket.rate) * 1000))
  return { budget: buckets, granted: 0, until: now + Math.max(1, Math.ceil(Math.max(...waits))) }
}

/** How long a throttled account is left alone, in ms. */
const pauseMs = (report: RateReport, throttles: number): number => {
  const emptyFor = report.remaining !== null && report.remaining <= 0 ? report.resetMs : null
  if (report.retryAfterMs !== null || emptyFor !== null) return Math.max(report.retryAfterMs ?? 0, emptyFor ?? 0)
  return Math.min(longestPauseMs, 1000 * 2 ** Math.min(throttles, 10))
}

/**
 * What an answer teaches: the rate is halved when it was throttled, and lowered to what lasts until the window's end when little of it is left.
 * @param observed calls of this class in the last second or so, a second
 * @returns the same object: it teaches nothing
 */
export const learn = (budget: Budget, operation: OperationClass, report: RateReport, observed: number, now: number): Budget => {
  const before = refilled(budget[operation] ?? free(now), now)
  const set = (bucket: Bucket): Budget => ({ ...budget, [operation]: bucket })
  if (!report.throttled) {
    const { limit, remaining, resetMs } = report
    if (remaining === null || resetMs === null || resetMs <= 0) return budget
    if (remaining <= 0) return (before.blockedUntil ?? 0) >= now + resetMs ? budget : set({ ...before, blockedUntil: now + resetMs })
    if (limit === null || remaining * 4 > limit) return budget
    const lasting = Math.max(slowest, remaining / (resetMs / 1000))
    if (before.rate !== null && before.rate <= lasting * 1.1) return budget
    return set({
      ...before,
      rate: lasting,
      tokens: Math.min(before.tokens, burstOf(lasting)),
      throttledAt: before.throttledAt ?? now,
      peak: lasting,
    })
  }
  const together = before.throttledAt !== null && now - before.throttledAt < sameMomentMs
  const blockedUntil = Math.max(
    before.blockedUntil ?? 0,
    now + pauseMs(report, together ? Math.max(0, before.throttles - 1) : before.throttles),
  )
  if (together) return set({ ...before, blockedUntil })
  const peak = before.rate ?? Math.max(leastPeak, observed)
  return set({
    rate: Math.max(slowest, peak / 2),
    tokens: Math.min(before.tokens, 0),
    at: now,
    blockedUntil,
    throttledAt: now,
    throttles: before.throttles + 1,
    peak,
  })
}

/** @param untilMs the database's time */
export const waitText = (untilMs: number): string => `waits for the account's rate budget until ${new Date(untilMs).toISOString()}`
