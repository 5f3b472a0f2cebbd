/** "Gone" is verified absence, never an accepted request: only here does an instance become `terminated`. */
import type { AttemptId, Ref } from '../model/ids.ts'
import type { Contradiction, ResourceIdentity } from '../providers/contract.ts'
import { attemptsOf, type AttemptRow } from '../store/attempts.ts'
import { updateEach } from '../store/bulk.ts'
import { appendEvents } from '../store/events.ts'
import { instancesByIds } from '../store/instances.ts'
import { closeOwners } from '../store/ledger.ts'
import { closeGivenUp, markGaveUp } from '../store/removals.ts'
import type { Tx } from '../store/store.ts'
import type { Held } from './pipeline.ts'
import { event, reportContradictions } from './record.ts'
import { resolveGone } from './resolve-gone.ts'
import { expireLive, lockAll, recordProofs, targetsOf, type Locks } from './remove-apply.ts'
import type { RemovalWork } from './remove-load.ts'
import { closeOvertaken, endedCause, leaveToSweeps, overtakenBy } from './remove-overtaken.ts'
import { identitiesOf, progressOf } from './removal-row.ts'

export interface Gone {
  held: Held
  work: RemovalWork
  identity: ResourceIdentity
  proof: string
  contradictions: Contradiction[]
  /** What was answered to its removal is written in this very transaction. */
  answeredNow?: true
  /** Of a group of which all were read at once; missing: `identity` alone. */
  all?: readonly { identity: ResourceIdentity; proof: string }[]
}

/** What this proves and the progress does not have yet. */
const provedNow = ({ work, identity, proof, all }: Gone): { work: RemovalWork; identity: ResourceIdentity; proof: string }[] => {
  const before = new Set(progressOf(work.removal))
  return (all ?? [{ identity, proof }]).filter((one) => !before.has(one.identity.immutableId)).map((one) => ({ ...one, work }))
}

const progressWith = (one: Gone): string[] => [
  ...progressOf(one.work.removal),
  ...provedNow(one).map(({ identity }) => identity.immutableId),
]

/** Every member is proved gone; anything less clears nothing (leases R83). */
const isWhole = (one: Gone): boolean => {
  const proved = new Set(progressWith(one))
  return identitiesOf(one.work.removal).every((member) => proved.has(member.immutableId))
}

/** The instances of which no other attempt can still have something. */
const unheldInstances = (gone: readonly Gone[], attempts: readonly AttemptRow[]): Set<string> => {
  const ended = new Set<string>(gone.map((one) => one.work.attempt.id))
  const open = attempts.filter((row) => !ended.has(row.id) && row.outcome !== 'absent' && row.outcome !== 'abandoned')
  const still = new Set<string>(open.map((row) => row.instance_id))
  return new Set(gone.map((one) => one.work.removal.instance_id).filter((id) => !still.has(id)))
}

const goneColumns = [
  ['id', 'text'],
  ['state', 'text'],
  ['identity', 'text'],
  ['progress', 'text'],
  ['gone_at', 'bigint'],
  ['failures', 'bigint'],
  ['error', 'text'],
  ['failed_at', 'bigint'],
  ['retry_at', 'bigint'],
  ['held_by', 'text'],
  ['due_at', 'bigint'],
  ['lock_owner', 'text'],
  ['lock_until', 'bigint'],
] as const
const answeredColumns = [...goneColumns, ['accepted_at', 'bigint']] as const

/**
 * @param locks of `lockAll`, where the caller has taken them already
 * @returns of each how long ago it was given up, where this proved all of it gone; in milliseconds
 */
export const applyGone = async (tx: Tx, items: readonly Gone[], locks?: Locks): Promise<(number | null)[]> => {
  const { mine, leases } = locks ?? (await lockAll(tx, items))
  const whole = items.filter((item) => mine.has(item.held.id) && isWhole(item))
  const attempts = await attemptsOf(
    tx,
    whole.map(({ work }) => work.removal.instance_id),
  )
  const overtaken = await overtakenBy(tx, whole, attempts, progressWith)
  const instances = await instancesByIds(
    tx,
    whole.filter((one) => overtaken.has(one.held.id)).map((one) => one.work.removal.instance_id),
  )
  const terminating = new Set<string>(instances.filter((row) => row.state === 'terminating').map((row) => row.id))
  // Beside a box that is in use, what a sweep found is simply gone, and says nothing of the box.
  const isBeside = (one: Gone): boolean =>
    overtaken.has(one.held.id) && endedCause(one.work) === null && !terminating.has(one.work.removal.instance_id)
  const gone = whole.filter((item) => !overtaken.has(item.held.id) || isBeside(item))
  const ending = gone.filter((item) => !isBeside(item))
  await updateEach(
    tx,
    'attempts',
    [
      ['id', 'text'],
      ['outcome', 'text'],
      ['ended_at', 'bigint'],
    ],
    ending.map(({ work }): [AttemptId, string, number] => [work.attempt.id, 'absent', tx.now]),
  )
  const cells = (one: Gone) => [
    one.work.removal.id,
    'gone',
    one.work.removal.identity ?? JSON.stringify((one.all ?? [one]).map(({ identity }) => identity)),
    JSON.stringify(progressWith(one)),
    tx.now,
    0,
    ...Array<null>(7).fill(null),
  ]
  const [answeredNow = [], others = []] = [true, false].map((now) => gone.filter((one) => (one.answeredNow === true) === now))
  await updateEach(tx, 'removals', goneColumns, others.map(cells))
  await updateEach(
    tx,
    'removals',
    answeredColumns,
    answeredNow.map((one) => [...cells(one), tx.now]),
  )
  // Of a member of a group it was recorded with its progress.
  await recordProofs(tx, whole.flatMap(provedNow))
  const unfinished = whole.flatMap((one) => {
    const attempt = overtaken.get(one.held.id)
    if (!attempt || isBeside(one)) return []
    return [{ ...one, attempt, progress: progressWith(one), lease: leases.get(one.work.removal.lease_id ?? '') }]
  })
  await closeOvertaken(
    tx,
    unfinished.filter((one) => endedCause(one.work) !== null),
  )
  await leaveToSweeps(
    tx,
    unfinished.filter((one) => endedCause(one.work) === null),
  )
  await closeGivenUp(
    tx,
    ending.map(({ work }) => work.attempt.id),
  )
  const ended = unheldInstances(ending, attempts)
  await updateEach(
    tx,
    'instances',
    [
      ['id', 'text'],
      ['state', 'text'],
      ['changed_at', 'bigint'],
      ['terminated_at', 'bigint'],
    ],
    [...ended].map((id) => [id, 'terminated', tx.now, tx.now]),
  )
  await closeOwners(
    tx,
    gone.filter((one) => ended.has(one.work.removal.instance_id)).map((one): Ref => one.work.removal.ref),
  )
  // The last that was tried for the others is over; what gave up of them is for sweeps (orphans R91).
  await markGaveUp(
    tx,
    gone.map(({ work }) => work.removal.instance_id).filter((id) => !ended.has(id)),
  )
  const withLeases = gone.map((item) => ({ ...item, lease: leases.get(item.work.removal.lease_id ?? '') }))
  const expired = await expireLive(tx, withLeases)
  const settled = withLeases.flatMap((one) => (one.lease?.may_exist && !isBeside(one) ? [[one.lease.id, 0] as const] : []))
  await updateEach(
    tx,
    'leases',
    [
      ['id', 'text'],
      ['may_exist', 'bigint'],
    ],
    settled,
  )
  await appendEvents(tx, [
    ...expired,
    ...withLeases.map(({ work, identity, proof, lease }) =>
      event(tx, 'removal.gone', { cloudId: identity.nativeId, proof }, { project: work.removal.project, targets: targetsOf(work, lease) }),
    ),
  ])
  for (const { work, contradictions } of gone)
    if (contradictions.length > 0) await reportContradictions(tx, { ...work.removal, id: work.removal.instance_id }, contradictions)
  await resolveGone(tx, gone)
  const all = new Set(gone)
  return items.map((one) => (all.has(one) ? tx.now - one.work.removal.opened_at : null))
}
