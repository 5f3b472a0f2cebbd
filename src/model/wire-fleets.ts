/** What the API says of fleets. */
export interface FleetView {
  name: string
  project: string
  backend: string
  /** held: by the churn breaker, until a person says otherwise; draining: deleted, and not all of it is gone. */
  state: 'running' | 'paused' | 'held' | 'draining'
  /** How many are to be ready. */
  size: number
  ready: number
  /** Under way, being wiped, or not looked at lately. */
  coming: number
  /** Those that leases have, or that a release retained. */
  taken: number
  ending: number
  /** Neither given out nor counted: a stop of this database, a hold, or a contradiction. */
  setAside: number
  setAsideWhy: string | null
  ttlSeconds: number
  labels: Record<string, string>
  createdBy: string
  createdAt: string
  changedAt: string
  pausedAt: string | null
  heldAt: string | null
  heldWhy: string | null
  deletedAt: string | null
}
