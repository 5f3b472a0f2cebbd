/**
 * The last look at what a sweep found, right before it is taken back: since the listing somebody may have said "not this". What its holder gave up goes
 * whatever its labels say; only what was found is asked (leases R58, R68; decisions 4).
 */
import { keepLabel } from './keep.ts'

/** As the fresh read shows it; missing: the provider's reads do not show it, and the listing's word stands. */
export interface FreshlyRead {
  labels?: Readonly<Record<string, string>> | null
  reportOnly?: string | null
}

/** Why it may not be taken back now; null: nothing stands against it. */
export const protectedNow = (found: FreshlyRead): string | null => {
  if (found.labels === null) return 'its labels can not be read, and one of them may protect it'
  const label = found.labels === undefined ? null : keepLabel(found.labels)
  if (label !== null) return `label ${label}=${found.labels?.[label] ?? ''}`
  return found.reportOnly ?? null
}
