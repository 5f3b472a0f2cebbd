/** What may happen to a lease, as pure decisions (leases R3, R19-R36). Hosts and pipelines only carry them out. */
import { capSeconds, expiresAt, hardEnd, isExpired } from './clocks.ts'
import type { ErrorCode } from './errors.ts'
import type { LeaseState } from './wire.ts'

/** What a decision needs to know of a lease. Times in ms. */
export interface LeaseFacts {
  state: LeaseState
  createdAt: number
  lastTouchedAt: number
  expiresAt: number
  ttlSeconds: number
  idleSeconds: number
  keep: boolean
  releaseDeletes: boolean | null
  retainUntil: number | null
  /** The end of which its holder was warned; null: of none. */
  idleWarnedFor: number | null
}

export const isLive = (state: LeaseState): boolean => state === 'provisioning' || state === 'active'

export interface Refused {
  kind: 'refused'
  code: ErrorCode
  message: string
}
const refused = (code: ErrorCode, message: string): Refused => ({ kind: 'refused', code, message })

export type HeartbeatDecision = Refused | { kind: 'accepted'; expiresAt: number; idleSeconds: number }

/**
 * leases R19-R23. At `expiresAt` it is too late (case G13); a removal that a worker holds comes before state and expiry (R21).
 * @param idleTimeoutSeconds replaces the stored idle time when finite and > 0; anything else is ignored (R23)
 */
export const decideHeartbeat = (
  lease: LeaseFacts,
  removalOpen: boolean,
  now: number,
  idleTimeoutSeconds?: number | null,
): HeartbeatDecision => {
  if (removalOpen && isLive(lease.state)) return refused('cleanup_in_progress', 'its box is being taken back; create a new lease')
  if (!isLive(lease.state)) return refused('lease_ended', `it is ${lease.state}; create a new lease`)
  if (isExpired(lease.expiresAt, now))
    return refused('lease_expired', 'its time is over, and a heartbeat does not revive it; create a new lease')
  const override = typeof idleTimeoutSeconds === 'number' && Number.isFinite(idleTimeoutSeconds) && idleTimeoutSeconds > 0
  const idleSeconds = override ? Math.min(capSeconds, Math.max(1, Math.trunc(idleTimeoutSeconds))) : lease.idleSeconds
  const next = expiresAt({ ...lease, idleSeconds, lastTouchedAt: now })
  // An end that a downtime moved (decisions 1) is never taken back by a beat, unless the beat asks for a shorter idle time.
  return { kind: 'accepted', idleSeconds, expiresAt: override ? next : Math.max(next, lease.expiresAt) }
}

export type ReleaseDecision =
  | Refused
  /** Nothing changes: the answer is the lease as it is. */
  | { kind: 'unchanged' }
  /** active or provisioning → released, and the box goes. */
  | { kind: 'remove'; endsNow: boolean }
  /** active or provisioning → released, and the box stays. */
  | { kind: 'retain' }
  /** active → released, and the box goes back to its fleet once nothing of its holder is left in it. */
  | { kind: 'return' }

/**
 * leases R30-R33.
 * @param removal is there an open one, or has one been finished (the box is gone)
 * @param remove the body's `delete`; absent means !keep, and of a fleet's box what the fleet decides
 * @param fleetTakes its fleet would have it back
 */
export const decideRelease = (
  lease: LeaseFacts,
  removal: 'none' | 'open' | 'gone',
  remove: boolean | undefined,
  fleetTakes = false,
): ReleaseDecision => {
  const wanted = remove ?? !lease.keep
  if (removal === 'open') {
    if (wanted || remove === undefined) return isLive(lease.state) && wanted ? { kind: 'remove', endsNow: true } : { kind: 'unchanged' }
    return refused('cleanup_in_progress', 'its box is being taken back already and can no longer be kept')
  }
  if (lease.state === 'active' && remove === undefined && wanted && fleetTakes) return { kind: 'return' }
  if (isLive(lease.state)) return wanted ? { kind: 'remove', endsNow: true } : { kind: 'retain' }
  // R32: a retained box still goes when a later release says so in as many words.
  if (lease.state === 'released' && lease.releaseDeletes === false && remove === true && removal === 'none')
    return { kind: 'remove', endsNow: false }
  return { kind: 'unchanged' }
}

/** case G9: the holder is warned when so much of the idle time is over. */
const warnedAfter = 0.8

/** ms: when the holder is to be warned of this end; null: it was, or no beat moves it. */
export const idleWarningAt = (
  lease: Pick<LeaseFacts, 'expiresAt' | 'idleSeconds' | 'idleWarnedFor' | 'createdAt' | 'ttlSeconds'>,
): number | null =>
  lease.idleWarnedFor === lease.expiresAt || lease.expiresAt >= hardEnd(lease)
    ? null
    : lease.expiresAt - Math.round((1 - warnedAfter) * lease.idleSeconds * 1000)

export type DueDecision =
  | { kind: 'nothing' }
  /** The end was moved later meanwhile: look again then. */
  | { kind: 'later'; at: number }
  /** Most of its idle time is over, and its holder has not been told (case G9): look again at `at`. */
  | { kind: 'warn-idle'; at: number; leftSeconds: number }
  | { kind: 'expire' }
  /** Expired before it had a box: the provision pipeline settles it. */
  | { kind: 'expire-provisioning' }
  /** A box kept by a release: its dead-man clock is moved, and past `retainUntil` a reminder opens (leases R37). */
  | { kind: 'retained'; overdue: boolean }

/** What the due time of a lease means when it has come. keep exempts from neither clock (leases R36). */
export const decideDue = (lease: LeaseFacts, now: number): DueDecision => {
  if (isLive(lease.state)) {
    if (!isExpired(lease.expiresAt, now)) {
      const at = Math.min(lease.expiresAt, hardEnd(lease))
      const warnAt = idleWarningAt(lease)
      if (warnAt === null || lease.state !== 'active') return { kind: 'later', at }
      if (now < warnAt) return { kind: 'later', at: warnAt }
      return { kind: 'warn-idle', at, leftSeconds: Math.ceil((lease.expiresAt - now) / 1000) }
    }
    return { kind: lease.state === 'active' ? 'expire' : 'expire-provisioning' }
  }
  if (lease.state === 'released' && lease.releaseDeletes === false && lease.retainUntil !== null)
    return { kind: 'retained', overdue: lease.retainUntil <= now }
  return { kind: 'nothing' }
}
