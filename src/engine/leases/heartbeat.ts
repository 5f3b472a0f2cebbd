/** The touch: grouped into one durable statement per batch, no provider call on the way (leases R19-R28). */
import { coalesce } from '../../lib/coalesce.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { isLeaseId, type LeaseId } from '../../model/ids.ts'
import { decideHeartbeat, idleWarningAt, isLive } from '../../model/lease.ts'
import { isExpired } from '../../model/clocks.ts'
import { isOverRemoval } from '../../model/removal.ts'
import type { LeaseView } from '../../model/wire.ts'
import { attemptsOf, type AttemptRow } from '../../store/attempts.ts'
import { updateEach } from '../../store/bulk.ts'
import { instancesByIds, type InstanceRow } from '../../store/instances.ts'
import { lockLeases, type LeaseRow } from '../../store/leases.ts'
import { removalsOfLeases } from '../../store/removals.ts'
import { timeNow } from '../../store/time.ts'
import type { Tx } from '../../store/store.ts'
import { mayManageLease, maySeeLease, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { leaseFacts } from '../facts.ts'
import { leaseView } from '../views.ts'
import { createAccessRefresh } from './access.ts'
import { leaseNotFound, resolveLease } from './find.ts'

export interface HeartbeatInput {
  idleTimeoutSeconds?: number | null
  expectedProvider?: string
}
interface Beat extends HeartbeatInput {
  actor: Actor
  id: LeaseId
}
type Answer = LeaseholdError | LeaseRow

/**
 * Leases whose removal a worker holds right now. Asked only for those past their end: an end whose removal was opened is never moved later, so a lease that is not
 * past it has none.
 */
const beingRemoved = async (tx: Tx, leases: readonly LeaseRow[], now: number): Promise<Set<string | null>> => {
  const past = leases.filter((lease) => isLive(lease.state) && isExpired(lease.expires_at, now))
  const held = (
    await removalsOfLeases(
      tx,
      past.map((lease) => lease.id),
    )
  ).filter((row) => !isOverRemoval(row.state) && row.lock_until !== null && row.lock_until > now)
  return new Set(held.map((row) => row.lease_id))
}

/** leases R21, the order of the checks. */
const judge = (
  beat: Beat,
  lease: LeaseRow | undefined,
  removing: boolean,
  now: number,
): LeaseholdError | { idleSeconds: number; expiresAt: number } => {
  if (!lease || !maySeeLease(beat.actor, lease)) return leaseNotFound(beat.id)
  if (!mayManageLease(beat.actor, lease))
    return new LeaseholdError('forbidden', `${lease.id} belongs to ${lease.owner}: only its owner, an operator or an admin beats it`)
  if (beat.expectedProvider !== undefined && beat.expectedProvider !== lease.provider)
    return new LeaseholdError('provider_mismatch', `${lease.id} is of provider ${lease.provider}, not ${beat.expectedProvider}`)
  const decision = decideHeartbeat(leaseFacts(lease), removing, now, beat.idleTimeoutSeconds)
  return decision.kind === 'refused' ? new LeaseholdError(decision.code, `${lease.id}: ${decision.message}`) : decision
}

const apply = async (tx: Tx, beats: readonly Beat[]): Promise<Answer[]> => {
  const leases = new Map((await lockLeases(tx, [...new Set(beats.map((beat) => beat.id))])).map((row) => [row.id, row]))
  // Judged by the time after the wait for the rows: who waited for one meanwhile must not be judged by an older clock.
  const now = await timeNow(tx)
  const removing = await beingRemoved(tx, [...leases.values()], now)
  const touched = new Set<LeaseId>()
  const earlier = new Set<LeaseId>()
  const answers = beats.map((beat): Answer => {
    const lease = leases.get(beat.id)
    const verdict = judge(beat, lease, removing.has(beat.id), now)
    if (verdict instanceof LeaseholdError || !lease) return verdict as LeaseholdError
    // The due time is moved later only by the pipeline; an end that comes earlier moves it at once.
    if (lease.due_at !== null && verdict.expiresAt < lease.due_at) earlier.add(beat.id)
    const next = { ...lease, last_touched_at: now, updated_at: now, expires_at: verdict.expiresAt, idle_seconds: verdict.idleSeconds }
    leases.set(beat.id, next)
    touched.add(beat.id)
    return next
  })
  const rows = [...touched].map((id) => leases.get(id) as LeaseRow)
  await updateEach(
    tx,
    'leases',
    [
      ['id', 'text'],
      ['last_touched_at', 'bigint'],
      ['updated_at', 'bigint'],
      ['expires_at', 'bigint'],
      ['idle_seconds', 'bigint'],
    ],
    rows.map((row) => [row.id, row.last_touched_at, row.updated_at, row.expires_at, row.idle_seconds]),
  )
  if (earlier.size > 0)
    await updateEach(
      tx,
      'leases',
      [
        ['id', 'text'],
        ['due_at', 'bigint'],
      ],
      rows.filter((row) => earlier.has(row.id)).map((row) => [row.id, idleWarningAt(leaseFacts(row)) ?? row.expires_at]),
    )
  return answers
}

interface Made {
  instance: InstanceRow | undefined
  attempts: AttemptRow[]
}
const rememberedLeases = 20_000

/**
 * @returns the beat: durable when it resolves
 * @throws LeaseholdError not_found, forbidden, provider_mismatch, cleanup_in_progress, lease_ended, lease_expired
 */
export const createHeartbeat = (context: EngineContext): ((actor: Actor, key: string, input: HeartbeatInput) => Promise<LeaseView>) => {
  const { store, signals } = context
  const beat = coalesce((beats: Beat[]) => store.write((tx) => apply(tx, beats)), {
    largest: 128,
    concurrent: store.dialect === 'postgresql' ? 2 : 1,
    gatherMs: 2,
  })
  // What an active lease was made of never changes while it is active, so its beats need not read it again.
  const made = new Map<string, Made>()
  const readMade = coalesce(
    (instanceIds: string[]) =>
      store.read(async (session): Promise<Made[]> => {
        const instances = new Map((await instancesByIds(session, instanceIds)).map((row) => [row.id as string, row]))
        const attempts = Map.groupBy(await attemptsOf(session, instanceIds), (row) => row.instance_id as string)
        return instanceIds.map((id) => ({ instance: instances.get(id), attempts: attempts.get(id) ?? [] }))
      }),
    { largest: 128 },
  )
  const madeFor = async (lease: LeaseRow): Promise<Made> => {
    const known = made.get(lease.id)
    if (known) return known
    const read = await readMade(lease.instance_id)
    if (lease.state === 'active') {
      if (made.size >= rememberedLeases) made.delete(made.keys().next().value as string)
      made.set(lease.id, read)
    }
    return read
  }
  const refreshAccess = createAccessRefresh(context)
  return async (actor, key, input) => {
    await context.awake()
    const id = isLeaseId(key) ? key : (await store.read(async (session) => resolveLease(session, actor, key, await store.now()))).id
    const answer = await beat({ ...input, actor, id })
    if (answer instanceof LeaseholdError) throw answer
    // An earlier end may come before the next tick of the clock.
    if (input.idleTimeoutSeconds != null) signals.wake('expire')
    const { instance, attempts } = await madeFor(answer)
    refreshAccess(
      answer,
      attempts.find((attempt) => attempt.id === instance?.attempt_id),
    )
    return leaseView(answer, instance, attempts, undefined)
  }
}
