/**
 * The last look at what a sweep found, right before it is taken back: since the listing somebody may have said "not this". What its holder gave up goes
 * whatever its labels say; only what was found is asked (leases R58, R68; decisions 4).
 */
import { keepLabel } from './keep.ts'

/** As the fresh read shows it; missing: the provider's reads do not show it, and the listing's word stands. */
export interface FreshlyRead {
  labels?: Readonly<Record<string, string>> | null
  reportOnly?: string | null
  name?: string
  attachedTo?: readonly string[]
}

/**
 * What the sweep that ordered the removal had seen of one resource. It is kept for ever, with the audit: of what people wrote on it there are hashes only,
 * because a label may hold what nobody should read again.
 */
export interface SeenThen {
  location: string
  kind: string
  nativeId: string
  nameHash: string
  labelsHash: string
  attachedTo: readonly string[]
}

/** Why it may not be taken back now; null: nothing stands against it. */
export const protectedNow = (found: FreshlyRead): string | null => {
  if (found.labels === null) return 'its labels can not be read, and one of them may protect it'
  const label = found.labels === undefined ? null : keepLabel(found.labels)
  if (label !== null) return `label ${label}=${found.labels?.[label] ?? ''}`
  return found.reportOnly ?? null
}

const labelsText = (labels: Readonly<Record<string, string>> | null): string =>
  labels === null ? 'unreadable' : JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)))

/** @param hash SHA-256 in hex */
export const labelsHash = (labels: Readonly<Record<string, string>> | null, hash: (text: string) => string): string =>
  hash(labelsText(labels))

/** @param hash SHA-256 in hex */
export const seenThen = (
  seen: {
    resource: Pick<SeenThen, 'location' | 'kind' | 'nativeId'>
    name: string
    labels: Readonly<Record<string, string>> | null
    attachedTo: readonly string[]
  },
  hash: (text: string) => string,
): SeenThen => ({
  location: seen.resource.location,
  kind: seen.resource.kind,
  nativeId: seen.resource.nativeId,
  nameHash: hash(seen.name),
  labelsHash: labelsHash(seen.labels, hash),
  attachedTo: [...seen.attachedTo],
})

/**
 * What of it is not as it was when its quarantine ended; null: all that the read shows is. It is dropped then and judged afresh: who changed it since may have
 * begun to use it (leases R59, case leases 16).
 */
export const changedSince = (then: SeenThen, found: FreshlyRead, hash: (text: string) => string): string | null => {
  if (found.labels !== undefined && labelsHash(found.labels, hash) !== then.labelsHash) return 'its labels or tags have changed'
  if (found.name !== undefined && hash(found.name) !== then.nameHash) return 'its name has changed'
  // What it is no longer attached to took nothing over: its own group may be half gone by now.
  const attached = found.attachedTo?.find((one) => !then.attachedTo.includes(one))
  return attached === undefined ? null : `it has been attached to ${attached}`
}
