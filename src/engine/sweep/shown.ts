/** A resource as a listing showed it, as a finding keeps it for whoever asks why. */
import { redact } from '../../lib/redact.ts'
import type { SeenResource } from '../../model/evidence.ts'

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
