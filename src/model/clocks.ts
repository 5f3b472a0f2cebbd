/** The two clocks of a lease: the idle time since the last touch, and the lifetime since its creation. */

export const defaultTtlSeconds = 5400
export const defaultIdleSeconds = 1800
/** For both clocks (leases R14, R15, D7). */
export const capSeconds = 86_400
/** What a retained box gets before its reminder, and its dead-man clock after the coordinator's last word (leases R37). */
export const retainSeconds = 86_400
/** Where an idle deadline that fell into a downtime moves to (decisions 1). */
export const forgivenessSeconds = 120

export interface NormalisedSeconds {
  seconds: number
  warning: string | null
}

/**
 * leases R14, R15: missing, non-finite or ≤ 0 gives the default; fractions are cut; at least 1 s; above the cap is capped with a warning.
 * @param name of the field, for the warning
 */
export const normaliseSeconds = (name: string, value: number | null | undefined, fallback: number): NormalisedSeconds => {
  if (value === null || value === undefined || !Number.isFinite(value) || value <= 0) return { seconds: fallback, warning: null }
  if (value > capSeconds) return { seconds: capSeconds, warning: `${name} ${value} is above the cap and was set to ${capSeconds}` }
  return { seconds: Math.max(1, Math.trunc(value)), warning: null }
}

export interface Clocks {
  createdAt: number
  lastTouchedAt: number
  ttlSeconds: number
  idleSeconds: number
}

/** When no activity moves the end any further, in ms (leases R16). */
export const hardEnd = (clocks: Pick<Clocks, 'createdAt' | 'ttlSeconds'>): number => clocks.createdAt + clocks.ttlSeconds * 1000

/** leases R13, in ms. */
export const expiresAt = (clocks: Clocks): number => Math.min(hardEnd(clocks), clocks.lastTouchedAt + clocks.idleSeconds * 1000)

/** leases R20, case G13: at the end it is past. */
export const isExpired = (expiresAtMs: number, now: number): boolean => expiresAtMs <= now

/**
 * Downtime is not idleness (decisions 1): given the last alive mark before `now`, which idle deadlines are moved, and to when. A deadline that
 * comes so soon after the gap that a beat lost in it would have moved it is moved too. Null when there was no gap.
 */
export const forgiveness = (lastMark: number | null, now: number): { from: number; to: number; until: number } | null => {
  if (lastMark === null || now <= lastMark) return null
  const until = now + forgivenessSeconds * 1000
  return { from: lastMark, to: Math.min(until, now + (now - lastMark)), until }
}
