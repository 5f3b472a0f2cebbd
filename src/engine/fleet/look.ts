/** A fresh look at a fleet's box, with the judgement that a removal makes before its call: is it, by identity, tags and keyed tag, what was made? */
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { preflight } from '../../model/removal.ts'
import type { FoundResource, Provider, ResourceIdentity } from '../../providers/contract.ts'
import type { AttemptRow } from '../../store/attempts.ts'
import { passWaits } from '../budget/waits.ts'
import type { EngineContext } from '../context.ts'
import type { ProvisionWork } from '../provision-load.ts'

export type Look =
  | { kind: 'ours'; found: FoundResource }
  /** It has ended, or is about to. */
  | { kind: 'ended'; why: string }
  /** What is there is not, or not provably, ours (I6): nothing of it is touched. */
  | { kind: 'contradiction'; why: string }
  | { kind: 'unknown'; error: string }

export const lookAt = async (
  { keyring, installation }: Pick<EngineContext, 'keyring' | 'installation'>,
  { config }: Pick<ProvisionWork, 'config'>,
  attempt: AttemptRow,
  provider: Provider,
  resource: ResourceIdentity,
  signal: AbortSignal,
): Promise<Look> => {
  try {
    const seen = await withDeadline('reading a box of a fleet', provider.callDeadlineSeconds * 1000, signal, (inner) =>
      provider.read(resource, config, { signal: inner }),
    )
    switch (seen.kind) {
      case 'absent':
        return { kind: 'ended', why: 'it is not there any more' }
      case 'unknown':
        return seen
      case 'replaced':
        return { kind: 'contradiction', why: `what stands under its name is not what was made: ${seen.why}` }
      case 'present': {
        const { found } = seen
        const bound = { resource, ref: attempt.ref, installation: installation.installation_id, attemptToken: attempt.token }
        const verdict = preflight(bound, found, found.existence === 'exists')
        if (verdict.kind === 'contradiction') return verdict
        if (found.existence !== 'exists') return { kind: 'ended', why: `it is ${found.providerState}` }
        const why = await keyring.whyNotOurs(found, attempt.mac_key)
        return why === null ? { kind: 'ours', found } : { kind: 'contradiction', why }
      }
    }
  } catch (error) {
    passWaits(error)
    return { kind: 'unknown', error: errorText(error) }
  }
}
