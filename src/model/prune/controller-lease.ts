/**
 * The lease of a controller id on a Swarm. No wall clock is in it: a rival looks whether the registration was written at all, and takes over only after
 * it has seen the very same version for three times the lease's life, by its own monotonic clock (prune 7.3).
 */
import type { Registration } from './controller.ts'

/** How often it is renewed, while a sweep is under way and while nothing is. */
export const renewEveryMs = { sweeping: 15_000, idle: 60_000 } as const
export const leaseTtlMs = 180_000
/** A rival's patience, in lives of the lease. */
export const patience = 3

/** What one process saw of the lease with its own eyes. */
export interface Observation {
  id: string
  version: number
  /** ms of its monotonic clock: when it saw this version first. */
  sinceMs: number
}

/** Begins anew with every other version, and with every other config: a deleted and recreated one has another id. */
export const observe = (before: Observation | null, seen: Pick<Registration, 'id' | 'version'>, monotonicMs: number): Observation =>
  before !== null && before.id === seen.id && before.version === seen.version
    ? before
    : { id: seen.id, version: seen.version, sinceMs: monotonicMs }

/** Who asks: this process, and what its database knows of the process before it. */
export interface Asking {
  nonce: string
  /** Written down, under the database's lock, before the Swarm was asked for it; null: nothing was ever. */
  recorded: { nonce: string; beat: number } | null
}

export type LeaseStep =
  /** Nobody's, or ours already, or that of a process of this same database which the database's lock says has gone. */
  { kind: 'take'; epoch: number } | { kind: 'renew'; epoch: number } | { kind: 'stand-by'; holder: string; leftMs: number }

/**
 * A clone of the database has the key and what was recorded up to the copy. It stands by as soon as the original has written once since: the beat on the
 * Swarm is then beyond what it knows of (prune 7.3).
 */
export const leaseStep = (
  registration: Registration,
  asking: Asking,
  observed: Observation,
  monotonicMs: number,
  ttlMs: number,
): LeaseStep => {
  const { holder, beat, epoch } = registration
  if (holder === asking.nonce) return { kind: 'renew', epoch }
  if (holder === null) return { kind: 'take', epoch: epoch + 1 }
  if (asking.recorded !== null && holder === asking.recorded.nonce && beat <= asking.recorded.beat)
    return { kind: 'take', epoch: epoch + 1 }
  const leftMs = observed.sinceMs + patience * ttlMs - monotonicMs
  return leftMs <= 0 ? { kind: 'take', epoch: epoch + 1 } : { kind: 'stand-by', holder, leftMs }
}

/**
 * Whether what can't be undone may be begun: half of the life of the lease is left, counted from before the renewal was sent (prune 7.3).
 * @param renewedMs of one's own monotonic clock; null: it never was
 */
export const mayDelete = (renewedMs: number | null, monotonicMs: number, ttlMs: number): boolean =>
  renewedMs !== null && monotonicMs - renewedMs < ttlMs / 2
