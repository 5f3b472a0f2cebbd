/** What the provider itself says of a lease's resource, read now: found, missing, or not known. A failed read is never `missing` (I5, leases R50). */
import { DeadlineError, withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import type { Ref } from '../../model/ids.ts'
import type { AuditRow } from '../../model/wire.ts'
import type { FoundResource, Provider, ResourceIdentity } from '../../providers/contract.ts'
import type { EngineContext } from '../context.ts'

export interface Look {
  cloudStatus: AuditRow['cloudStatus']
  cloudState: string | null
  message: string | null
}
export interface Subject {
  provider: string
  config: Record<string, unknown>
  ref: Ref | null
  /** As an attempt recorded it; null while none did. */
  identity: ResourceIdentity | null
  /** Something beside the recorded identity may exist (leases R7). */
  mayExist: boolean
}

const longestCallMs = 15_000
const failed = (message: string): Look => ({ cloudStatus: 'error', cloudState: null, message })
const missing = (state: string | null, message: string | null): Look => ({ cloudStatus: 'missing', cloudState: state, message })

/** What is already going counts as missing, as a terminated machine does (leases R50). */
const byExistence = (found: FoundResource): Look =>
  found.existence === 'exists'
    ? { cloudStatus: 'found', cloudState: found.providerState, message: null }
    : missing(found.providerState, null)

const readIdentity = async (provider: Provider, subject: Subject, identity: ResourceIdentity, signal: AbortSignal): Promise<Look> => {
  const answer = await provider.read(identity, subject.config, { signal })
  switch (answer.kind) {
    case 'present':
      return byExistence(answer.found)
    case 'absent':
      return missing(null, answer.proof)
    case 'replaced':
      return missing(null, answer.why)
    case 'unknown':
      return failed(errorText(answer.error))
  }
}

const findByRef = async (provider: Provider, subject: Subject, ref: Ref, signal: AbortSignal): Promise<Look> => {
  const answer = await provider.find(ref, subject.config, { signal })
  if (answer.kind === 'incomplete') return failed(errorText(answer.why))
  const looks = answer.found.map(byExistence)
  return looks.find((look) => look.cloudStatus === 'found') ?? looks[0] ?? missing(null, `nothing carries the ref ${ref}`)
}

const look = async (provider: Provider, subject: Subject, signal: AbortSignal): Promise<Look> => {
  const { identity, ref } = subject
  if (identity !== null) {
    const known = await readIdentity(provider, subject, identity, signal)
    if (known.cloudStatus !== 'missing' || !subject.mayExist) return known
  }
  return ref === null ? missing(null, 'nothing was ever asked for') : findByRef(provider, subject, ref, signal)
}

/** @param signal ends the look; what it then does not know is `error` */
export const lookAt = async (context: EngineContext, subject: Subject, signal: AbortSignal): Promise<Look> => {
  const provider = context.providers.get(subject.provider)
  if (!provider) return failed(`this coordinator has no provider "${subject.provider}"`)
  if (signal.aborted) return failed('not looked at: the time for this audit was over')
  try {
    return await withDeadline(
      `reading from ${subject.provider}`,
      Math.min(longestCallMs, provider.callDeadlineSeconds * 1000),
      signal,
      (inner) => look(provider, subject, inner),
    )
  } catch (error) {
    return failed(
      signal.aborted && !(error instanceof DeadlineError) ? 'not looked at to the end: the time for this audit was over' : errorText(error),
    )
  }
}
