/** What the calls answer: values, not exceptions. A failed read is never an empty one. */
import type { RemoveOutcome } from '../contract.ts'

export type { RemoveOutcome }
export type ListOutcome<T> = { kind: 'complete'; objects: T[] } | { kind: 'incomplete'; why: string }
export type InspectOutcome<T> =
  | { kind: 'present'; object: T }
  /** An exact not-found. */
  | { kind: 'absent' }
  | { kind: 'unknown'; error: string }
export type CreateOutcome =
  | { kind: 'created'; id: string }
  /** Something has the name already, perhaps in another case. */
  | { kind: 'taken'; why: string }
  /** Nothing was made, by the Engine's word. */
  | { kind: 'rejected'; why: string }
  /** It may or may not be there. */
  | { kind: 'uncertain'; error: string }
export type UpdateOutcome =
  | { kind: 'updated' }
  /** It is not any more as it was read: nothing was done. */
  | { kind: 'stale' }
  | { kind: 'absent' }
  | { kind: 'rejected'; why: string }
  | { kind: 'uncertain'; error: string }
export type InfoOutcome =
  /** @param clusterId what the Swarm itself is called for ever; `nodes` as it counts them */
  | { kind: 'manager'; clusterId: string; nodeId: string; nodes: number; managers: number }
  | { kind: 'no-manager'; why: string }
  | { kind: 'unknown'; error: string }
