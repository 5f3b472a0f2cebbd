/**
 * A claim: the local file by which this machine's user holds a lease (leases R107-R116). Pure: its shape, its check and the
 * decision whether it may be used from here; files and locks are in `store/claims.ts`.
 */
import { isLeaseId } from './ids.ts'

export interface Claim {
  leaseID: string
  /** 32 hex digits, new on every write: what compare-and-set compares first. */
  revision: string
  slug: string
  provider: string
  /** The provider's own id of the resource; null while it is not known. */
  cloudID: string | null
  cloudImmutableID: string | null
  /** The account behind the backend, as the provider names it. */
  providerScope: string | null
  /** The repository that the lease is used from, or the folder outside of one. */
  repoRoot: string
  /** RFC 3339, whole seconds, UTC. */
  claimedAt: string
  lastUsedAt: string
  idleTimeoutSeconds: number
  /** `state` is `provisioning` (recovery authority only, leases R112) or `ready`. */
  labels: Record<string, string>
  /** Address of the coordinator that holds the lease. */
  coordinator: string
  /** Request key of the create, so that one whose answer was lost can be cancelled; null for a lease of other making. */
  createAttemptID: string | null
}

export type ClaimCheck = { ok: true; claim: Claim } | { ok: false; problem: string }

export const isReady = (claim: Claim): boolean => claim.labels['state'] === 'ready'

/** RFC 3339 with whole seconds. */
export const claimTime = (nowMs: number): string => new Date(nowMs).toISOString().replace(/\.\d{3}Z$/, 'Z')

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/
const isText = (value: unknown): value is string => typeof value === 'string'
const isTextOrNull = (value: unknown): boolean => value === null || isText(value)
const isTime = (value: unknown): boolean => isText(value) && timePattern.test(value) && !Number.isNaN(Date.parse(value))

const fields: Record<keyof Claim, (value: unknown) => boolean> = {
  leaseID: (value) => isText(value) && isLeaseId(value),
  revision: (value) => isText(value) && /^[0-9a-f]{32}$/.test(value),
  slug: isText,
  provider: isText,
  cloudID: isTextOrNull,
  cloudImmutableID: isTextOrNull,
  providerScope: isTextOrNull,
  repoRoot: (value) => isText(value) && value.startsWith('/'),
  claimedAt: isTime,
  lastUsedAt: isTime,
  idleTimeoutSeconds: (value) => Number.isSafeInteger(value) && (value as number) >= 0,
  labels: (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isText),
  coordinator: isText,
  createAttemptID: isTextOrNull,
}

/** Checks what a file holds. An unknown field is a problem too: a newer program may mean something by it (leases R115). */
export const checkClaim = (value: unknown, leaseID: string): ClaimCheck => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { ok: false, problem: 'is not a JSON object' }
  const record = value as Record<string, unknown>
  for (const [name, accepts] of Object.entries(fields)) {
    if (!Object.hasOwn(record, name)) return { ok: false, problem: `lacks the field ${name}` }
    if (!accepts(record[name])) return { ok: false, problem: `has an unusable value in ${name}` }
  }
  const unknown = Object.keys(record).find((name) => !Object.hasOwn(fields, name))
  if (unknown !== undefined) return { ok: false, problem: `has an unknown field ${JSON.stringify(unknown.slice(0, 60))}` }
  if (record['leaseID'] !== leaseID) return { ok: false, problem: `says that it is of lease ${record['leaseID'] as string}` }
  return { ok: true, claim: record as unknown as Claim }
}

/** Equal in every field: what a removal compares (leases R111). */
export const sameClaim = (a: Claim, b: Claim): boolean => canonical(a) === canonical(b)

const canonical = (claim: Claim): string =>
  JSON.stringify(claim, (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  )

export type ClaimUse = { kind: 'ours' } | { kind: 'move'; from: string } | { kind: 'refused'; owner: string }

/** May the lease be used from this repository? Another one's claim is refused unless it is to be moved (leases R110). */
export const claimUse = (claim: Claim, repoRoot: string, intent: 'use' | 'reclaim'): ClaimUse => {
  if (claim.repoRoot === repoRoot) return { kind: 'ours' }
  return intent === 'reclaim' ? { kind: 'move', from: claim.repoRoot } : { kind: 'refused', owner: claim.repoRoot }
}
