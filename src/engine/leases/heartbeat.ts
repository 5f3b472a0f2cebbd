/** The heartbeat: grouped into one durable statement per batch, no provider call on the way (leases R19-R28). */
import { coalesce } from '../../lib/coalesce.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { isLeaseId } from '../../model/ids.ts'
import type { LeaseView } from '../../model/wire.ts'
import { attemptsOf, type AttemptRow } from '../../store/attempts.ts'
import { instancesByIds, type InstanceRow } from '../../store/instances.ts'
import type { LeaseRow } from '../../store/leases.ts'
import type { Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { leaseView } from '../views.ts'
import { createAccessRefresh } from './access.ts'
import { applyBeats, applyToKnown, type Beat, type BeatAnswer, type HeartbeatInput } from './beat-apply.ts'
import { resolveLease } from './find.ts'

interface Made {
  instance: InstanceRow | undefined
  attempts: AttemptRow[]
}
/** What a beat knows of an active lease: as it last wrote it, and what it was made of, which never changes while it is active. */
interface Known {
  lease: LeaseRow
  made: Made
}
/** About 1 KB each: so many live leases are beaten without reading them again. */
const mostKnown = 150_000

/**
 * @returns the beat: durable when it resolves
 * @throws LeaseholdError not_found, forbidden, provider_mismatch, cleanup_in_progress, lease_ended, lease_expired
 */
export const createHeartbeat = (context: EngineContext): ((actor: Actor, key: string, input: HeartbeatInput) => Promise<LeaseView>) => {
  const { store, signals } = context
  const known = new Map<string, Known>()
  const remember = (lease: LeaseRow, made: Made): void => {
    const before = known.get(lease.id)
    if (before) {
      // Two batches may end out of order; an older row would only cost the next beat a read.
      before.lease = lease
      return
    }
    if (known.size >= mostKnown) known.delete(known.keys().next().value as string)
    known.set(lease.id, { lease, made })
  }

  const run = async (beats: Beat[]): Promise<BeatAnswer[]> => {
    const expected = beats.filter((beat) => known.has(beat.id))
    const done =
      expected.length === 0
        ? new Map<Beat, LeaseRow>()
        : await store.write((tx) => applyToKnown(tx, expected, (id) => known.get(id)?.lease))
    const rest = beats.filter((beat) => !done.has(beat))
    const answers = rest.length === 0 ? [] : await store.write((tx) => applyBeats(tx, rest))
    const read = new Map(rest.map((beat, i) => [beat, answers[i] as BeatAnswer]))
    return beats.map((beat) => {
      const answer = done.get(beat) ?? (read.get(beat) as BeatAnswer)
      const before = known.get(beat.id)
      if (before && !(answer instanceof LeaseholdError)) before.lease = answer
      else if (answer instanceof LeaseholdError) known.delete(beat.id)
      return answer
    })
  }
  const beat = coalesce(run, { largest: 128, concurrent: store.dialect === 'postgresql' ? 2 : 1, gatherMs: 2 })
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
    const made = known.get(lease.id)?.made
    if (made) return made
    const read = await readMade(lease.instance_id)
    if (lease.state === 'active') remember(lease, read)
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
