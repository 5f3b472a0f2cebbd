/** What the HTTP API answers of the installation itself; see `wire.ts`. */
import type { StopCode } from './stop.ts'

/** Why no removal begins, until a person says which database is the true one. */
export interface StopView {
  /** `*`: in every scope. */
  scope: string
  code: StopCode
  why: string
  since: string
}
/** A key of the keyed tag. Its secret is never shown. */
export interface KeyView {
  id: string
  createdAt: string
  /** It makes no new tags since then, and verifies on. null: it is the current one. */
  retiredAt: string | null
}
export interface InstallationView {
  installation: string
  /** Counted up at each start and adoption. */
  epoch: number
  createdAt: string
  adoptedAt: string | null
  /** Ids that this database had before it was forked. */
  former: string[]
  /** After a fork: what was made before belongs to a former one. null: it was never forked. */
  heldSince: string | null
  /** Where it lived when it was last found right; null: no start has looked yet. */
  place: string | null
  /** Where it is now. */
  found: string
  stops: StopView[]
  keys: KeyView[]
}
