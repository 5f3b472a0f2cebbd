/** decisions 2: a box that vanished is called missing after two complete inventories and an exact read, never before. */
import { isLive } from '../../model/lease.ts'
import { completeCell, type Inventory } from '../../model/inventory.ts'
import { advanceAbsence, missing, type Absence } from '../../model/missing.ts'
import { resourceKey } from '../../model/removal.ts'
import type { AttemptId, InstanceId, Ref } from '../../model/ids.ts'
import { appendEvents } from '../../store/events.ts'
import { lockInstances } from '../../store/instances.ts'
import { closeOwners } from '../../store/ledger.ts'
import { lockLeases } from '../../store/leases.ts'
import { unswept, type FindingRow } from '../../store/findings.ts'
import type { Tx } from '../../store/store.ts'
import type { EngineContext } from '../context.ts'
import { event, instanceTarget, leaseTarget, reportFinding, resolveAbout } from '../record.ts'
import { leftBy, readExactly, type ExactReads } from './exact-reads.ts'
import type { Expected, Unseen } from './expected.ts'
import type { SweepMode } from '../../model/sweep-settings.ts'
import type { SweepWork } from './load.ts'

export interface Vanished {
  unseen: Unseen
  absence: Absence | null
  proved: boolean
  /** What it left, where it is proved gone. */
  left: Awaited<ReturnType<typeof leftBy>>
}

const absenceOf = (row: FindingRow | undefined): Absence | null =>
  row === undefined || row.standing_since === null || row.last_complete_at === null
    ? null
    : { firstAt: row.standing_since, lastAt: row.last_complete_at, count: row.complete_sightings }

/** Judges what the ledger expects and the listing did not show; asks the provider only where two inventories agree. */
export const judgeVanished = async (
  context: EngineContext,
  work: SweepWork,
  expected: Expected,
  inventory: Inventory,
  /** Those that the guard on counts made of this listing. */
  reads: ExactReads,
  signal: AbortSignal,
): Promise<Vanished[]> => {
  if (expected.unseen.length === 0) return []
  const open = await context.store.read(({ db }) =>
    db
      .selectFrom('findings')
      .selectAll()
      .where('project', '=', work.backend.project)
      .where('backend', '=', work.backend.name)
      .where('code', '=', 'not-seen')
      .where('state', '=', 'open')
      .execute(),
  )
  const before = new Map(open.map((row) => [row.target_id, row]))
  const policy = { visibilityMs: work.provider.visibilitySeconds * 1000, marginMs: work.marginMs }
  const judged: Vanished[] = []
  for (const unseen of expected.unseen) {
    const absence = advanceAbsence(
      absenceOf(before.get(unseen.instance.id)),
      unseen,
      false,
      completeCell(inventory, unseen.location, unseen.kind),
      policy,
    )
    const first = missing(unseen, absence, null, policy)
    const decision =
      first.kind === 'read'
        ? missing(unseen, absence, reads.get(unseen.instance.id) ?? (await readExactly(work, unseen, signal)), policy)
        : first
    const proved = decision.kind === 'missing'
    judged.push({ unseen, absence, proved, left: proved ? await leftBy(work, unseen, signal) : { tagged: [], untagged: [] } })
  }
  return judged
}

/** A lease that has failed sounds as if all of it were over: what is not is said here. */
const wordsOf = (left: Vanished['left'], mode: SweepMode): string => {
  if ('unknown' in left) return `; what it left could not be read: ${left.unknown}`
  const { tagged, untagged } = left
  const theirs = mode === 'delete' ? 'which sweeps take back' : `which sweeps report and, in mode ${mode}, leave alone`
  return [
    tagged.length === 0 ? '' : `; it left ${tagged.join(', ')}, ${theirs}`,
    untagged.length === 0 ? '' : `; it left what carries no tag, which nothing takes back: ${untagged.join(', ')}. End it by hand`,
  ].join('')
}

const end = async (tx: Tx, work: SweepWork, { unseen, left }: Vanished, now: number): Promise<void> => {
  const [lease] = unseen.leaseId ? await lockLeases(tx, [unseen.leaseId]) : []
  const [instance] = await lockInstances(tx, [unseen.instance.id])
  // Something changed meanwhile: the next sweep looks again.
  if (!instance || instance.changed_at !== unseen.instance.changedAt || instance.state !== unseen.instance.state) return
  await tx.db
    .updateTable('instances')
    .set({ state: 'terminated', changed_at: now, terminated_at: now, due_at: null })
    .where('id', '=', instance.id)
    .execute()
  await tx.db
    .updateTable('attempts')
    .set({ outcome: 'absent', ended_at: now })
    .where('id', '=', unseen.attemptId as AttemptId)
    .execute()
  await closeOwners(tx, [unseen.ref as Ref])
  const message = `${unseen.kind} ${unseen.nativeId} is gone, and nothing of ours removed it`
  const targets = [...(lease ? [leaseTarget(lease)] : []), instanceTarget(instance)]
  if (lease && (isLive(lease.state) || lease.release_deletes === 0)) {
    const failed = isLive(lease.state)
      ? { state: 'failed' as const, failure_code: 'resource_missing', failure_error: message, ended_at: now }
      : {}
    await tx.db
      .updateTable('leases')
      .set({ ...failed, release_deletes: lease.release_deletes === 0 ? 1 : lease.release_deletes, updated_at: now, due_at: null })
      .where('id', '=', lease.id)
      .execute()
    await appendEvents(tx, [event(tx, 'lease.failed', { code: 'resource_missing', error: message }, { project: lease.project, targets })])
  }
  await resolveAbout(tx, 'instance', [instance.id], 'not-seen')
  const key = resourceKey(work.backend.provider, unseen.location, unseen.nativeId)
  await reportFinding(tx, {
    code: 'missing',
    project: work.backend.project,
    scope: unseen.scope,
    target: { type: 'resource', id: key, name: unseen.name },
    alsoTargets: targets,
    message: message + wordsOf(left, work.settings.mode.value),
    evidence: {
      ref: unseen.ref,
      instance: instance.id,
      lease: unseen.leaseId,
      ...('unknown' in left ? {} : { left: left.tagged, untagged: left.untagged }),
    },
    // Under its ref only: no later listing of the backend resolves it.
    sweep: { ...unswept, ref: unseen.ref as Ref, attempt_id: unseen.attemptId as AttemptId },
  })
}

export const noteVanished = async (tx: Tx, work: SweepWork, vanished: readonly Vanished[]): Promise<void> => {
  for (const one of vanished) {
    const { unseen, absence, proved } = one
    if (proved) await end(tx, work, one, tx.now)
    else if (absence !== null)
      await reportFinding(tx, {
        code: 'not-seen',
        project: work.backend.project,
        scope: unseen.scope,
        target: { type: 'instance', id: unseen.instance.id, name: unseen.name },
        message: `${unseen.kind} ${unseen.nativeId} was not in the last complete inventory`,
        evidence: { ref: unseen.ref, resource: resourceKey(work.backend.provider, unseen.location, unseen.nativeId) },
        fingerprint: unseen.immutableId,
        sweep: {
          backend: work.backend.name,
          ref: unseen.ref as Ref,
          attempt_id: unseen.attemptId as AttemptId,
          standing_since: absence.firstAt,
          complete_sightings: absence.count,
          last_complete_at: absence.lastAt,
          sweep_id: null,
        },
      })
  }
  // Seen again: the absence is over.
  const still = new Set(vanished.map((one) => one.unseen.instance.id as InstanceId))
  const open = await tx.db
    .selectFrom('findings')
    .select('target_id')
    .where('project', '=', work.backend.project)
    .where('backend', '=', work.backend.name)
    .where('code', '=', 'not-seen')
    .where('state', '=', 'open')
    .execute()
  await resolveAbout(
    tx,
    'instance',
    open.map((row) => row.target_id).filter((id) => !still.has(id as InstanceId)),
    'not-seen',
  )
}
