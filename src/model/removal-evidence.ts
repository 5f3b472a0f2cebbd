/** What a removal stands on, kept with it and with each of its intents: findings and events are kept for a time only, a receipt must be told for ever. */
import type { FactSource } from './evidence.ts'
import type { SeenThen } from './fresh-protection.ts'
import type { Proof } from './ownership.ts'

/** A person's word that a plan begins; missing with a plan: it was within the limits, or an older version began it. */
export interface PlanApproval {
  by: string
  /** Empty: none was given. */
  reason: string
  /** ms */
  at: number
  /** A token's name; `system`: a sweep that was beyond the limits. */
  madeBy: string
}

export interface FoundEvidence {
  /** The reason code of the verdict: the rule that it was ordered by. */
  reason: string
  finding: string | null
  fingerprint: string
  /** ms: the listings that showed the same fingerprint, the first and the last of them, and how many were complete. */
  firstSeenAt: number
  lastSeenAt: number
  timesSeen: number
  /** The sweep, whose certificate names it. */
  sweep: string
  /** ms: when its listing began. */
  listedAt: number
  /** The cells of the location that it was seen in. */
  coverage: { location: string; kind: string; state: string; resources: number }[]
  /** `id` ends in the SHA-256 over everything in it. */
  plan: { id: string; size: number; approval?: PlanApproval } | null
  /** Its members as they were seen; missing: an older version ordered it. */
  members?: readonly SeenThen[]
  /** The two facts of each member (I6). */
  proofs: readonly Proof[]
  facts: readonly { fact: string; source: FactSource; at: number | null }[]
}

/** Who acts where no person does; nobody else can be called so. */
export const systemActor = 'system'

export interface RemovalEvidence {
  /** A token's name; `system`: a clock, a sweep, or what a crash left. */
  orderedBy: string
  found?: FoundEvidence
}
