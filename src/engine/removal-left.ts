/** What is left of a removal, asked of its provider now: what a person is told to end by hand. It proves nothing and changes nothing (orphans R91). */
import { withDeadline } from '../lib/deadline.ts'
import { errorText } from '../lib/redact.ts'
import type { Seen } from '../model/stopped.ts'
import { inOrder } from '../model/topology.ts'
import type { FoundResource, Provider, ResourceIdentity } from '../providers/contract.ts'
import type { EngineContext } from './context.ts'
import type { RemovalWork } from './remove-load.ts'
import { leftOf, stoppedOf } from './removal-row.ts'

/** ms: a person waits for the answer, or a lock does. */
const longestMs = 15_000

type Subject = Pick<RemovalWork, 'removal' | 'attempt' | 'config' | 'backendMissing'>
type Look = Omit<Seen, 'at'> & {
  /** Something of it is not even on its way out; null: nobody knows. */
  stands: boolean | null
}

/** By its records alone: nobody knows what of it is still there. */
const unread = (known: readonly ResourceIdentity[], why: string): Look => ({ there: known, unknown: why, stands: null })

const found = (members: readonly FoundResource[], order: readonly string[]): Look => {
  const left = members
    .filter((one) => one.existence !== 'gone')
    .map((one) => ({ kind: one.resource.kind, nativeId: one.resource.nativeId, attachedTo: one.attachedTo ?? [], found: one }))
  const { sorted, ring } = inOrder({ order, companions: [] }, left)
  return {
    there: [...sorted, ...ring].map((one) => one.found.resource),
    unknown: null,
    stands: left.some((one) => one.found.existence === 'exists'),
  }
}

/** Where the provider knows no groups: each of what is known, by an exact read; a failed one proves nothing (I5). */
const readEach = async (provider: Provider, subject: Subject, known: readonly ResourceIdentity[], signal: AbortSignal): Promise<Look> => {
  const reads = await Promise.all(
    known.map(async (identity) => ({ identity, answer: await provider.read(identity, subject.config, { signal }) })),
  )
  const there = reads.filter(({ answer }) => answer.kind === 'unknown' || (answer.kind === 'present' && answer.found.existence !== 'gone'))
  const failed = reads.flatMap(({ identity, answer }) =>
    answer.kind === 'unknown' ? [`${identity.nativeId} could not be read: ${errorText(answer.error)}`] : [],
  )
  const stands = there.some(({ answer }) => answer.kind === 'present' && answer.found.existence === 'exists')
  return {
    there: there.map((one) => one.identity),
    unknown: failed.length === 0 ? null : failed.join('; '),
    stands: stands || failed.length === 0 ? stands : null,
  }
}

const ask = async (provider: Provider, subject: Subject, known: readonly ResourceIdentity[], signal: AbortSignal): Promise<Look> => {
  const { removal, attempt, config } = subject
  const account = await provider.scope(config, { signal })
  if (account.kind === 'unknown') return unread(known, `the account can't be read: ${errorText(account.error)}`)
  if (account.scope !== removal.scope) return unread(known, `this coordinator reaches ${account.scope}, not ${removal.scope}`)
  const order = provider.topology?.(config).order ?? [provider.ownerKind]
  if (provider.inspect !== undefined) {
    const group = { ref: removal.ref, location: removal.location, attemptToken: attempt.token, known }
    const inspected = await provider.inspect(group, config, { signal })
    if (inspected.kind === 'complete') return found(inspected.members, order)
    const each = await readEach(provider, subject, known, signal)
    const why = `its group could not be read: ${errorText(inspected.why)}`
    return { ...each, unknown: each.unknown === null ? why : `${why}; ${each.unknown}`, stands: each.stands === true ? true : null }
  }
  if (known.length > 0) return readEach(provider, subject, known, signal)
  const answer = await provider.find(removal.ref, config, { signal })
  return answer.kind === 'incomplete' ? unread(known, errorText(answer.why)) : found(answer.found, order)
}

/** Outside of any transaction, and bounded in time. What can't be read is named and said to be unknown: a failed look is no emptiness (I5). */
export const lookAtLeft = async (context: EngineContext, subject: Subject, signal: AbortSignal): Promise<Look> => {
  const { removal, attempt, backendMissing } = subject
  const stopped = stoppedOf(removal)
  const bare = { ...removal, stopped: stopped === null ? null : JSON.stringify({ ...stopped, seen: undefined }) }
  // By every name that is on record: what its removal has, and the box that its attempt recorded.
  const known = leftOf(bare, attempt)
  const provider = context.providers.get(removal.provider)
  if (!provider) return unread(known, `this coordinator has no provider "${removal.provider}"`)
  if (backendMissing) return unread(known, `backend ${removal.backend} does not exist any more`)
  const ms = Math.min(longestMs, provider.callDeadlineSeconds * 1000)
  try {
    return await withDeadline(`looking at what is left of ${removal.ref}`, ms, signal, (inner) => ask(provider, subject, known, inner))
  } catch (error) {
    return unread(known, errorText(error))
  }
}

/** The same, to be kept with the removal. */
export const seeLeft = async (context: EngineContext, subject: Subject, signal: AbortSignal): Promise<Seen> => {
  const { there, unknown } = await lookAtLeft(context, subject, signal)
  return { at: await context.store.now(), there, unknown }
}

/** How a person ends each, in the provider's own words or by its name, in the order in which they can go (orphans R97). */
export const byHand = (
  left: readonly ResourceIdentity[],
  provider: Pick<Provider, 'manualRemoval'> | undefined,
  config: Record<string, unknown>,
): string =>
  left
    .map((one) => provider?.manualRemoval?.(one, config) ?? `${one.kind} ${one.nativeId} in ${one.location} of ${one.scope}`)
    .join(', then ')
