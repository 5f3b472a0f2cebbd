/** Why a lease ended under the command of `run`, for one line to its user. */
import type { EventView, LeaseView } from '../../model/wire.ts'
import type { Client } from './http.ts'
import { getLease } from './leases.ts'

/** Short: the command has ended, and its user waits for the prompt. */
const budgetMs = 5_000
/** A box's own clock may end it this long before the coordinator has looked at its lease. */
const ahead = 2_000

/** `lease lh_… (slug) ended at its maximum lifetime`, and what becomes of its command; null when nothing says that it ended. */
export const explainEnd = async (
  client: Client,
  { id }: LeaseView,
  command: 'ended' | 'running',
  nowMs: number,
): Promise<string | null> => {
  try {
    const lease = await getLease(client, id, undefined, AbortSignal.timeout(budgetMs))
    const how = await howItEnded(client, lease, command === 'ended', nowMs)
    return how === null ? null : `lease ${id} (${lease.slug}) ${how}; ${fate(lease, command)}`
  } catch {
    // No answer explains nothing; the release that follows says what is wrong with the coordinator.
    return null
  }
}

const fate = ({ cleanup }: LeaseView, command: 'ended' | 'running'): string => {
  if (command === 'ended') return 'its command was ended'
  if (cleanup.state !== 'held') return 'its command is being ended'
  return `its box is held back by ${cleanup.heldBy ?? 'someone'}, so the command goes on until that is lifted`
}

const howItEnded = async (client: Client, lease: LeaseView, commandEnded: boolean, nowMs: number): Promise<string | null> => {
  if (lease.state === 'released') return `was released${await byWhom(client, lease.id)}`
  if (lease.state === 'failed') return `failed: ${lease.failureError ?? lease.failureCode ?? 'no reason given'}`
  // A lease past its end stays active until its provider has accepted the removal.
  const past = lease.cleanup.state !== 'none' || (commandEnded && nowMs >= Date.parse(lease.expiresAt) - ahead)
  if (lease.state !== 'expired' && !past) return null
  const hardEnd = Date.parse(lease.createdAt) + lease.ttlSeconds * 1000
  return Date.parse(lease.expiresAt) >= hardEnd ? 'ended at its maximum lifetime' : 'ended after its idle time'
}

/** The event of the release names who did it; the lease itself does not. */
const byWhom = async (client: Client, id: string): Promise<string> => {
  const query = { target: id, limit: 500 }
  try {
    const { events } = await client.get<{ events: EventView[] }>('/v1/events', { query, deadlineMs: budgetMs })
    const release = events.findLast(({ code }) => code === 'lease.released')
    return release ? ` by ${release.actor}` : ''
  } catch {
    return ''
  }
}
