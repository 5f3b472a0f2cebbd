/** What a removal waits for, for people: what is stuck is shown with its next step, and never becomes "terminated" by itself (case E4). */
import { waitText } from './budget.ts'
import { isFound, isOverRemoval, stuckAfter } from './removal.ts'
import type { SweepMode } from './sweep-settings.ts'
import type { RemovalState } from './wire.ts'

export interface RemovalStanding {
  id: string
  state: RemovalState
  cause: string
  failures: number
  acceptedAt: number | null
  retryAt: number | null
  heldBy: string | null
  /** ms; null: it is not looked at by itself any more. */
  dueAt: number | null
  /** ms: it waits for its account's rate until then; null: it does not. */
  waitsUntil: number | null
  /** It waits for a person to say why something is gone. */
  missing: boolean
  /** Something of it carries no tags, so that no sweep sees it (leases R85). */
  unlisted: boolean
  /** A finding says that what is there contradicts what it is to take back. */
  contradicted: boolean
  /** The installation that a fork of this database left it to; null: it is held here. */
  leftTo: string | null
  fingerprint: string
  /** How a person ends each that is left, in the order in which they can go; empty: nobody knows what is. */
  byHand: string
}

/** An accepted removal that is not proved gone after so long is shown as stuck. */
const longAcceptedMs = 3_600_000

/** Does it go no further without a person, as far as anybody can tell? */
export const isStuck = (one: RemovalStanding, now: number): boolean =>
  !isOverRemoval(one.state) &&
  (one.state === 'gave-up' ||
    one.dueAt === null ||
    one.failures >= stuckAfter ||
    (one.acceptedAt !== null && now - one.acceptedAt > longAcceptedMs))

/** It was refused so often that trying by itself may never end it: a person may (orphans R91). */
export const isContradicted = (one: Pick<RemovalStanding, 'failures' | 'contradicted'>): boolean =>
  one.contradicted && one.failures >= stuckAfter

export const nextStep = (one: RemovalStanding, mode: SweepMode): string => {
  const close = `leasehold removal close ${one.id} --reason R`
  // Whatever this database says of it, it may be in use there.
  if (one.state === 'closed' && one.leftTo !== null) return `nothing here: it is left to installation ${one.leftTo}; do not end it by hand`
  if (isOverRemoval(one.state)) return 'none'
  if (one.leftTo !== null)
    return `nothing here: installation ${one.leftTo} has it since this database was forked; do not end it by hand. ${close} takes it off this list`
  if (one.missing)
    return `find out why it is gone; then leasehold removal acknowledge-absence ${one.id} --fingerprint ${one.fingerprint.slice(0, 12)} --reason R`
  const ended = `end it by hand${one.byHand === '' ? '' : ` (${one.byHand})`}`
  if (one.state === 'gave-up')
    return mode === 'delete' && !one.unlisted
      ? `a sweep that finds it goes on with it, after its quarantine; or ${ended}, then ${close}`
      : `${ended}: its absence is found by itself; or ${close}`
  if (one.dueAt === null)
    return `look at the reason; leasehold stop tries it once more where a lease ordered it; ${close} gives it up for good`
  if (one.heldBy !== null) return `the end of what holds it: ${one.heldBy}`
  if (isFound(one.cause) && mode !== 'delete') return `mode delete: in mode ${mode} nothing found is taken back`
  if (one.waitsUntil !== null) return `none: it ${waitText(one.waitsUntil)}`
  if (one.retryAt !== null && isContradicted(one))
    return `what contradicts it is cleared up, for it is tried again at ${new Date(one.retryAt).toISOString()}; or ${close}`
  if (one.retryAt !== null) return `the next try at ${new Date(one.retryAt).toISOString()}`
  return one.state === 'verifying' ? 'the proof of its absence: it is looked for' : 'none: it is being worked on'
}
