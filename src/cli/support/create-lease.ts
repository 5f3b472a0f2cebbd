/**
 * Creates a lease so that nothing is lost: the claim is written first, a lost answer is asked for again with the same request
 * key, and an interrupted create is cancelled by that key (leases R10, R112).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { hex } from '../../lib/ids.ts'
import type { Claim } from '../../model/claim.ts'
import { slugify } from '../../model/slug.ts'
import type { LeaseAnswer, LeaseView } from '../../model/wire.ts'
import type { ClaimKeeper } from './claim-keeper.ts'
import type { Cli } from './cli.ts'
import { CliError, messageOf } from './errors.ts'
import { ApiError, NoAnswer, type Client } from './http.ts'
import { Interrupted } from './interrupts.ts'
import { leasePath } from './leases.ts'

export interface LeaseRequest {
  slug?: string
  provider?: string
  backend?: string
  fleet?: string
  project?: string
  ttlSeconds?: number
  idleTimeoutSeconds?: number
  keep?: boolean
  labels?: Record<string, string>
}
export interface Created {
  lease: LeaseView
  leaseToken: string | null
  claim: Claim
}
export interface CreateOptions {
  cli: Cli
  client: Client
  keeper: ClaimKeeper
  request: LeaseRequest
  /** The caller's own lease id: the create is then repeatable by that id (leases R11). */
  fixedID: string | null
  /** Ends the create; it is cancelled at the coordinator and `Interrupted` is thrown. */
  signal: AbortSignal
}

interface Sent {
  /** A request may have reached the coordinator. */
  anything: boolean
  /** One did perhaps, and its answer never came. */
  lost: boolean
  accepted: boolean
}

/** The server answers within 55 s; it may have been busy before. */
const answerDeadlineMs = 70_000
/** How long a lost answer is asked for again. */
const replayMs = 60_000

/** Answers an active lease. Throws `Interrupted`, or a `CliError` that says what is left and how to look at it. */
export const createLease = async (options: CreateOptions): Promise<Created> => {
  const { cli, keeper, request, fixedID, signal } = options
  const id = fixedID ?? `lh_${hex(6)}`
  const key = fixedID === null ? `cat_${hex(16)}` : null
  const { claim, created } = await keeper.begin(id, key, request)
  const sent: Sent = { anything: false, lost: false, accepted: false }
  try {
    const answer = await send(options, id, key, sent)
    for (const warning of answer.warnings ?? []) cli.warn(asTyped(warning))
    const rewritten = slugRewritten(request.slug, answer.lease.slug)
    if (rewritten !== null) cli.warn(rewritten)
    const lease = await untilActive(options, answer.lease)
    return { lease, leaseToken: answer.leaseToken ?? null, claim: await keeper.ready(claim, lease) }
  } catch (error) {
    if (error instanceof Interrupted || signal.aborted) {
      await cancel(options, id, key, claim)
      throw error
    }
    // Refused with no earlier try whose answer was lost, or never sent at all: nothing was made, and nothing is to be looked after.
    const refused = error instanceof ApiError && error.status < 500 && error.code !== 'lease_state_changed' && !sent.lost && !sent.accepted
    if (created && (refused || !sent.anything)) await keeper.drop(claim)
    else if (error instanceof NoAnswer) {
      throw new CliError(
        `${error.message}. Whether lease ${id} was made is not known: look with "leasehold status ${id}", end it with "leasehold stop ${id}"`,
      )
    }
    throw error
  }
}

/** A coordinator counts in seconds under the names of its fields; a command line has options and units. */
export const asTyped = (warning: string): string => {
  const [, field, asked, cap] = /^(ttlSeconds|idleTimeoutSeconds) (\d+) is above the cap and was set to (\d+)$/.exec(warning) ?? []
  if (asked === undefined || cap === undefined) return warning
  const most = inOneUnit(Number(cap))
  return `--${field === 'ttlSeconds' ? 'ttl' : 'idle'} ${inOneUnit(Number(asked))} is above the cap of ${most} and was set to ${most}`
}

/** `30h` and not `1d 6h`: what is compared stands in one unit. */
const inOneUnit = (seconds: number): string => {
  if (seconds % 3600 === 0) return `${seconds / 3600}h`
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`
}

const slugRewritten = (wanted: string | undefined, given: string): string | null => {
  if (wanted === undefined || wanted === given) return null
  const plain = slugify(wanted)
  if (plain === given)
    return `the slug ${JSON.stringify(wanted)} was made ${JSON.stringify(given)}: slugs are lower-case letters, digits and -`
  return `the slug ${JSON.stringify(plain ?? wanted)} is in use: this lease got ${JSON.stringify(given)}`
}

const send = async ({ cli, client, request, signal }: CreateOptions, id: string, key: string | null, sent: Sent): Promise<LeaseAnswer> => {
  const deadline = performance.now() + replayMs
  for (let pauseMs = 250; ; pauseMs = Math.min(pauseMs * 2, 2000)) {
    try {
      const options = {
        body: key === null ? request : { ...request, leaseID: id, createAttemptID: key },
        deadlineMs: answerDeadlineMs,
        signal,
      }
      const { body } =
        key === null
          ? await client.call<LeaseAnswer>('PUT', leasePath(id), options)
          : await client.call<LeaseAnswer>('POST', '/v1/leases', options)
      sent.accepted = true
      return body
    } catch (error) {
      const mayWork = error instanceof NoAnswer || (error instanceof ApiError && [429, 502, 503, 504].includes(error.status))
      if (!(error instanceof NoAnswer && !error.sent)) sent.anything = true
      if (error instanceof NoAnswer && error.sent) sent.lost = true
      // Nobody was there from the start: say so at once rather than after a minute.
      if (!mayWork || !sent.anything || performance.now() > deadline) throw error
      if (pauseMs === 250) cli.say(`${messageOf(error)}; asking again for the same lease`)
      await sleep(pauseMs, undefined, { signal }).catch(() => {
        throw signal.reason
      })
    }
  }
}

const untilActive = async ({ client, keeper, signal }: CreateOptions, first: LeaseView): Promise<LeaseView> => {
  let lease = first
  for (let pauseMs = 100; lease.state === 'provisioning'; pauseMs = Math.min(pauseMs * 1.5, 2000)) {
    await sleep(pauseMs, undefined, { signal }).catch(() => {
      throw signal.reason
    })
    try {
      lease = (await client.get<{ lease: LeaseView }>(leasePath(first.id), { signal })).lease
    } catch (error) {
      // A coordinator that restarts goes on with this create; only a clear answer ends the wait.
      if (!(error instanceof NoAnswer) && !(error instanceof ApiError && error.status >= 500)) throw error
    }
  }
  if (lease.state === 'active') return lease
  const gone = await keeper.settle(lease)
  const left = gone ? 'its box is proved gone' : `what may be left of it is being removed: leasehold status ${lease.id}`
  throw new CliError(
    `lease ${lease.id} ${lease.state}: ${lease.failureError ?? lease.failureCode ?? 'it ended before it was ready'}; ${left}`,
  )
}

const cancel = async ({ cli, client, keeper }: CreateOptions, id: string, key: string | null, claim: Claim): Promise<void> => {
  try {
    const { body } =
      key === null
        ? await client.call<{ lease?: LeaseView }>('POST', `${leasePath(id)}/release`, { body: { delete: true }, deadlineMs: 20_000 })
        : await client.call<{ lease?: LeaseView }>('POST', `${leasePath(id)}/cancel-create`, {
            body: { createAttemptID: key },
            deadlineMs: 20_000,
          })
    // Without a lease the tombstone stands alone: a create that arrives later makes nothing.
    if (!body.lease) await keeper.drop(claim)
    else if (!(await keeper.settle(body.lease))) cli.say(`the create of ${id} is cancelled; its removal goes on: leasehold status ${id}`)
  } catch (error) {
    cli.warn(`the create of ${id} could not be cancelled: ${messageOf(error)}. End it with "leasehold stop ${id}"`)
  }
}
