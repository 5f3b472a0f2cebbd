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

/** What the sweep that ordered the removal had seen of one resource. */
export interface SeenThen {
  nativeId: string
  name: string
  labels: Readonly<Record<string, string>> | null
  attachedTo: readonly string[]
}

/** Why it may not be taken back now; null: nothing stands against it. */
export const protectedNow = (found: FreshlyRead): string | null => {
  if (found.labels === null) return 'its labels can not be read, and one of them may protect it'
  const label = found.labels === undefined ? null : keepLabel(found.labels)
  if (label !== null) return `label ${label}=${found.labels?.[label] ?? ''}`
  return found.reportOnly ?? null
}

const sorted = (labels: Readonly<Record<string, string>> | null): string =>
  labels === null ? 'unreadable' : JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)))

/**
 * What of it is not as it was when its quarantine ended; null: all that the read shows is. It is dropped then and judged afresh: who changed it since may have
 * begun to use it (leases R59, case leases 16).
 */
export const changedSince = (then: SeenThen, found: FreshlyRead): string | null => {
  if (found.labels !== undefined && sorted(found.labels) !== sorted(then.labels)) return 'its labels or tags have changed'
  if (found.name !== undefined && found.name !== then.name) return `its name was ${then.name} and is ${found.name}`
  // What it is no longer attached to took nothing over: its own group may be half gone by now.
  const attached = found.attachedTo?.find((one) => !then.attachedTo.includes(one))
  if (attached !== undefined) return `it has been attached to ${attached}`
  return null
}
