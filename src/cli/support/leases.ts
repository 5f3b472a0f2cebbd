/** Reading one lease, and waiting for the proof of its removal. Reads only: none of this moves a clock. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { InstanceView, LeaseView } from '../../model/wire.ts'
import { isLeaseId } from '../../model/ids.ts'
import type { ClaimStore } from '../../store/claims.ts'
import { ApiError, NoAnswer, segment, type Client } from './http.ts'
import { hasEnded } from './lease-text.ts'

export const leasePath = (identifier: string): string => `/v1/leases/${segment(identifier)}`

const slugAdvice = '(a slug names live leases only; "leasehold list --all" shows ended ones)'

/**
 * By id or slug. The API resolves a slug only while its lease lives; for one that has ended the local claim may still know the
 * id. An id is never looked for as a slug (leases R116).
 */
export const getLease = async (client: Client, identifier: string, claims?: ClaimStore, signal?: AbortSignal): Promise<LeaseView> => {
  const options = signal ? { signal } : {}
  try {
    return (await client.get<{ lease: LeaseView }>(leasePath(identifier), options)).lease
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404 || isLeaseId(identifier)) throw error
    const claimed = claims?.list().claims.filter((claim) => claim.slug === identifier && claim.coordinator === client.url) ?? []
    if (claimed.length !== 1) throw new ApiError(404, { ...error.answer, message: `${error.answer.message} ${slugAdvice}` })
    return (await client.get<{ lease: LeaseView }>(leasePath((claimed[0] as { leaseID: string }).leaseID), options)).lease
  }
}

/**
 * Is nothing of this lease left? True only with proof: the removal says `gone`, its box went back to its fleet with nothing of it left inside, or none was ordered and the instance is
 * terminated, which means that its absence was proved. A read that fails proves nothing.
 */
export const removalIsFinal = async (client: Client, lease: LeaseView): Promise<boolean> => {
  if (!hasEnded(lease)) return false
  if (lease.cleanup.state === 'gone' || lease.cleanup.state === 'returned') return true
  if (lease.cleanup.state !== 'none' || lease.provisioningResourceMayExist) return false
  try {
    const { instance } = await client.get<{ instance: InstanceView }>(`/v1/instances/${segment(lease.instanceID)}`)
    return instance.state === 'terminated'
  } catch {
    return false
  }
}

export interface RemovalWait {
  lease: LeaseView
  final: boolean
  /** A hold or a freeze stops the removal: waiting longer proves nothing. */
  held: boolean
  /** Nobody tries it any more: a person closed it, it waits for one, or it is another installation's. Waiting longer proves nothing either. */
  over: boolean
}

/** Who closes for `system` goes on with another removal. */
const isClosed = ({ cleanup }: LeaseView): boolean => cleanup.state === 'closed' && cleanup.closedBy !== 'system'

/** @param tries how often it had failed when it was asked for: that failure is not the answer to this order */
const waitsForPerson = ({ cleanup }: LeaseView, tries: number): boolean =>
  cleanup.state === 'failed' && cleanup.retryAt === null && cleanup.attempts > tries

/** What held a removal back and was just lifted shows until the coordinator has looked at it again. */
const heldAfterMs = 1000

/** Polls until the removal is final, held, or over, `limitMs` have passed, or the signal ends the wait; tolerates a coordinator that restarts. */
export const waitForRemoval = async (client: Client, lease: LeaseView, limitMs: number, signal?: AbortSignal): Promise<RemovalWait> => {
  const start = performance.now()
  const deadline = start + limitMs
  let latest = lease
  let tries = lease.cleanup.attempts
  for (let pauseMs = 50; ; pauseMs = Math.min(pauseMs * 1.5, 1000)) {
    if (await removalIsFinal(client, latest)) return { lease: latest, final: true, held: false, over: false }
    tries = Math.min(tries, latest.cleanup.attempts)
    if (isClosed(latest) || waitsForPerson(latest, tries)) return { lease: latest, final: false, held: false, over: true }
    const held = latest.cleanup.state === 'held'
    if (held && performance.now() - start >= heldAfterMs) return { lease: latest, final: false, held, over: false }
    const left = deadline - performance.now()
    if (left <= 0 || signal?.aborted) return { lease: latest, final: false, held, over: false }
    await sleep(Math.min(pauseMs, left), undefined, signal ? { signal } : {}).catch(() => {})
    if (signal?.aborted) return { lease: latest, final: false, held, over: false }
    try {
      latest = await getLease(client, lease.id)
    } catch (error) {
      if (!(error instanceof NoAnswer) && !(error instanceof ApiError && error.status >= 500)) throw error
    }
  }
}
