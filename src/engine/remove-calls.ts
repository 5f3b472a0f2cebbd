/** What removals ask of providers, each with its deadline; a provider that throws has answered "unknown". No other file calls `provider.remove`. */
import { withDeadline } from '../lib/deadline.ts'
import { errorText } from '../lib/redact.ts'
import type { InspectOutcome, Precondition, Provider, ReadOutcome, RemoveOutcome, ResourceIdentity } from '../providers/contract.ts'
import { passWaits } from './budget/waits.ts'
import type { Keyring } from './keyring.ts'
import type { Held } from './pipeline.ts'
import type { RemovalWork } from './remove-load.ts'
import { gotTags, isStillUntagged, wasUntagged } from './removal-row.ts'

/** With what its keyed tag says of it. */
export const readMember = async (
  keyring: Keyring,
  work: RemovalWork,
  provider: Provider,
  identity: ResourceIdentity,
  signal: AbortSignal,
): Promise<ReadOutcome> => {
  try {
    const answer = await withDeadline(`reading ${identity.nativeId}`, provider.callDeadlineSeconds * 1000, signal, (inner) =>
      provider.read(identity, work.config, { signal: inner }),
    )
    // Without tags there is no keyed one.
    const keyed = answer.kind === 'present' && !isStillUntagged(work.removal, answer.found)
    const why = keyed ? await keyring.whyNotOurs(answer.found, work.attempt.mac_key) : null
    if (why === null) return answer
    return { kind: 'replaced', why: wasUntagged(work.removal, identity) ? `${gotTags}: ${why}` : why }
  } catch (error) {
    passWaits(error)
    return { kind: 'unknown', error: errorText(error) }
  }
}

export const callRemove = async (
  held: Held,
  work: RemovalWork,
  provider: Provider,
  identity: ResourceIdentity,
  precondition: Precondition,
): Promise<RemoveOutcome> => {
  try {
    return await withDeadline(`removing ${identity.nativeId}`, provider.callDeadlineSeconds * 1000, held.signal, (inner) =>
      provider.remove(identity, work.config, { signal: inner }, precondition),
    )
  } catch (error) {
    passWaits(error)
    return { kind: 'unknown', error: errorText(error) }
  }
}

/** Undefined: the provider knows no groups. */
export const inspectGroup = async (
  work: RemovalWork,
  provider: Provider,
  known: readonly ResourceIdentity[],
  signal: AbortSignal,
): Promise<InspectOutcome | undefined> => {
  const { removal, attempt, config } = work
  try {
    return await withDeadline(`inspecting the group of ${removal.ref}`, provider.callDeadlineSeconds * 1000, signal, async (inner) =>
      provider.inspect?.({ ref: removal.ref, location: removal.location, attemptToken: attempt.token, known }, config, { signal: inner }),
    )
  } catch (error) {
    passWaits(error)
    return { kind: 'incomplete', why: errorText(error) }
  }
}
