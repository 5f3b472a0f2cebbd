/** A resource as a listing showed it, as a finding keeps it for whoever asks why. */
import { redact } from '../../lib/redact.ts'
import type { SeenResource } from '../../model/evidence.ts'
import { completeCell, type Inventory } from '../../model/inventory.ts'
import type { FindingRow } from '../../store/findings.ts'

/** What an older version did not keep is missing. */
export interface ShownMember {
  kind: string
  nativeId: string
  location: string
  name?: string
  state?: string
  createdAt?: number | null
  fixedAttemptToken?: string | null
  tags?: { installation: string | null; attempt: string | null }
  attachedTo?: readonly string[]
  /** Null: unreadable. */
  labels?: Readonly<Record<string, string>> | null
}

/** What a finding told of. */
export const membersOf = (row: Pick<FindingRow, 'evidence'>): Partial<ShownMember>[] =>
  (JSON.parse(row.evidence) as { members?: Partial<ShownMember>[] }).members ?? []

/** What was told of, and this inventory could not have shown: a page that failed makes no group smaller (I5). */
export const unshown = (inventory: Inventory, row: Pick<FindingRow, 'evidence'>, listed: readonly ShownMember[]): Partial<ShownMember>[] =>
  membersOf(row).filter(
    ({ location = '', kind = '', nativeId }) =>
      completeCell(inventory, location, kind) === null && !listed.some((one) => one.kind === kind && one.nativeId === nativeId),
  )

const shownLabels = (labels: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, redact(`${key}=${value}`) === `${key}=${value}` ? value : '***']))

export const shownMember = (seen: SeenResource): ShownMember & SeenResource['resource'] => ({
  ...seen.resource,
  name: seen.name,
  state: seen.providerState,
  createdAt: seen.createdAt,
  fixedAttemptToken: seen.fixedAttemptToken,
  tags: { installation: seen.tags.installation, attempt: seen.tags.attempt },
  attachedTo: [...seen.attachedTo],
  labels: seen.labels === null ? null : shownLabels(seen.labels),
})
