/** Labels and tags on what we create (leases 2.3). They are for people and for checks; they never authorise by themselves. */
import { LeaseholdError } from './errors.ts'

/** Our own tags, on every kind of resource (decisions, Names). */
export const reservedKeys = ['leasehold', 'leasehold_ref', 'leasehold_installation', 'leasehold_attempt', 'leasehold_mac'] as const

/** leases 2.3: trimmed, foreign characters become `_`, cut at 63, ends cleaned; lossy, so a check and never a key. */
export const labelValue = (text: string): string => {
  const value = text
    .trim()
    .replace(/[^A-Za-z0-9_.-]/g, '_')
    .slice(0, 63)
    .replace(/^[_.-]+|[_.-]+$/g, '')
  return value === '' ? 'unknown' : value
}

const isReserved = (key: string): boolean => {
  const plain = key
    .trim()
    .toLowerCase()
    .replace(/[.\-/]/g, '_')
  return plain === 'leasehold' || plain.startsWith('leasehold_')
}

/**
 * A user's labels, checked: a reserved key is refused, not overwritten, so that nobody plants a ref (orphans U19).
 * @throws LeaseholdError bad_request
 */
export const checkUserLabels = (labels: Record<string, string>): Record<string, string> => {
  const entries = Object.entries(labels)
  if (entries.length > 32) throw new LeaseholdError('bad_request', `labels: at most 32 are taken, ${entries.length} came`)
  for (const [key, value] of entries) {
    if (isReserved(key)) throw new LeaseholdError('bad_request', `labels: "${key}" is reserved for Leasehold itself; use another key`)
    // Overwritten silently it would say something else than its holder meant: "keep" would protect nothing.
    if (writtenByUs.has(key.trim().toLowerCase()))
      throw new LeaseholdError(
        'bad_request',
        key.trim().toLowerCase() === 'keep'
          ? `labels: "${key}" is written by Leasehold itself; say "keep": true to keep the box`
          : `labels: "${key}" is written by Leasehold itself; use another key`,
      )
    if (!/^[A-Za-z0-9][A-Za-z0-9_./-]{0,62}$/.test(key))
      throw new LeaseholdError(
        'bad_request',
        `labels: "${key}" is no label key: letters, digits and _ . / - only, at most 63, a letter or digit first`,
      )
    if (value.length > 256) throw new LeaseholdError('bad_request', `labels: the value of "${key}" is longer than 256 characters`)
  }
  return labels
}

export interface LabelFacts {
  leaseId: string
  slug: string
  owner: string
  provider: string
  keep: boolean
  createdAtMs: number
  expiresAtMs: number
  ttlSeconds: number
  idleSeconds: number
}

/** The labels of a brokered resource: written once, never moved (leases 2.3). Times are unix seconds. */
export const brokeredLabels = (facts: LabelFacts, user: Record<string, string>): Record<string, string> => {
  const seconds = (ms: number): string => String(Math.floor(ms / 1000))
  return {
    ...user,
    leasehold: 'true',
    created_by: 'leasehold',
    keep: String(facts.keep),
    lease: facts.leaseId,
    slug: labelValue(facts.slug),
    owner: labelValue(facts.owner),
    provider: labelValue(facts.provider),
    state: 'leased',
    created_at: seconds(facts.createdAtMs),
    last_touched_at: seconds(facts.createdAtMs),
    ttl_secs: String(facts.ttlSeconds),
    idle_timeout_secs: String(facts.idleSeconds),
    expires_at: seconds(facts.expiresAtMs),
  }
}

/** Of a box that is made to be ready: of its fleet, and of none of those that will have it. */
export const fleetLabels = (
  facts: { fleet: string; provider: string; createdAtMs: number },
  user: Record<string, string>,
): Record<string, string> => ({
  ...user,
  leasehold: 'true',
  created_by: 'leasehold',
  fleet: labelValue(facts.fleet),
  provider: labelValue(facts.provider),
  state: 'ready',
  created_at: String(Math.floor(facts.createdAtMs / 1000)),
})

const writtenByUs: ReadonlySet<string> = new Set([
  'fleet',
  ...Object.keys(
    brokeredLabels(
      { leaseId: '', slug: '', owner: '', provider: '', keep: false, createdAtMs: 0, expiresAtMs: 0, ttlSeconds: 0, idleSeconds: 0 },
      {},
    ),
  ),
])
