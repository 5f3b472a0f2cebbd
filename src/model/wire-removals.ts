/** What the HTTP API answers of removals; see `wire.ts`. */
import type { RemovalState } from './wire.ts'

export interface RemovalMemberView {
  location: string
  kind: string
  nativeID: string
  immutableID: string
  /** gone: proved; missing: an exact read does not find it, and nothing of ours explains that; left: the rest. */
  state: 'left' | 'gone' | 'missing'
}
export interface RemovalView {
  id: string
  state: RemovalState
  version: number
  project: string
  backend: string
  provider: string
  scope: string
  location: string
  name: string
  ref: string
  instanceID: string
  leaseID: string | null
  /** Of its lease. */
  owner: string | null
  cause: string
  openedAt: string
  ageSeconds: number
  failures: number
  /** Why it stands still, or its last failure. */
  reason: string | null
  retryAt: string | null
  heldBy: string | null
  /** It waits for its account's rate budget until then. */
  waitsUntil: string | null
  /** It goes no further without a person, failed three times in a row, or was accepted an hour ago and is not proved gone. */
  stuck: boolean
  nextStep: string
  /** In the order in which they go; empty: nothing is bound yet. */
  members: RemovalMemberView[]
  /** What a person names who acknowledges an absence or closes it: it stands for exactly what is shown here. */
  fingerprint: string
  /** By name what is not proved gone, as far as anybody knows; empty: nothing, or nobody knows what. */
  left: string[]
  /** When its provider was last asked what is left; null: it is what the records say. */
  leftSeenAt: string | null
  /** What is missing without an explanation, each as `kind native-id`. */
  missing: string[]
  closedAt: string | null
  closedBy: string | null
  closedReason: string | null
}
