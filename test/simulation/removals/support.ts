/** Groups of four on the simulated cloud, and what their removals left on record. */
import { acknowledgeAbsence, getRemoval } from '../../../src/engine/admin/index.ts'
import type { Actor } from '../../../src/engine/actor.ts'
import { releaseLease } from '../../../src/engine/leases/index.ts'
import type { LeaseView } from '../../../src/model/wire.ts'
import type { Kind } from '../../../src/providers/simulated/words.ts'
import type { RemovalRow } from '../../../src/store/removals.ts'
import { ann, root } from '../../support/engine.ts'
import { gate } from '../../support/scripted-provider.ts'
import { until } from '../../support/until.ts'
import type { Case } from '../cases/support.ts'

export type Ids = Record<Kind, string>
export const approver: Actor = { name: 'pat', role: 'approver', project: null, onlyLease: null }
export const order = ['machine', 'nic', 'ip', 'disk'] as const

/** A lease with its whole group. */
export const groupOn = async (one: Case): Promise<{ lease: LeaseView & { cloudID: string }; ids: Ids }> => {
  const before = new Set(one.running())
  const lease = await one.lease()
  const made = one.cloud.all().filter((resource) => !before.has(resource.id))
  return { lease, ids: Object.fromEntries(made.map((resource) => [resource.kind, resource.id])) as Ids }
}

/** Many at once. */
export const groupsOn = async (one: Case, count: number): Promise<{ lease: LeaseView; ids: Ids }[]> => {
  const leases = await Promise.all(Array.from({ length: count }, () => one.lease()))
  const attempts = await one.store.read(({ db }) => db.selectFrom('attempts').select(['ref', 'token']).execute())
  const tokens = new Map(attempts.map((row): [string, string] => [row.ref, row.token]))
  const byToken = Map.groupBy(one.cloud.all(), (resource) => resource.clientToken)
  return leases.map((lease) => {
    const made = byToken.get(tokens.get(lease.ref ?? '') ?? '') ?? []
    return { lease, ids: Object.fromEntries(made.map((resource) => [resource.kind, resource.id])) as Ids }
  })
}

export const release = (one: Case, lease: LeaseView): Promise<LeaseView> =>
  releaseLease(one.engine.context, ann, lease.id, { delete: true })

export const removals = (one: Pick<Case, 'store'>): Promise<RemovalRow[]> =>
  one.store.read(({ db }) => db.selectFrom('removals').selectAll().orderBy('opened_at').orderBy('id').execute())

export const removalOf = async (one: Pick<Case, 'store'>): Promise<RemovalRow> => {
  const rows = await removals(one)
  const [only] = rows
  if (!only || rows.length > 1) throw new Error(`there are ${rows.length} removals`)
  return only
}

export const progress = (row: RemovalRow): string[] => JSON.parse(row.progress) as string[]

/** Until the removal stands as is asked, without moving the clock. */
export const removalWhen = (one: Case, what: string, holds: (row: RemovalRow) => boolean): Promise<RemovalRow> =>
  until(async () => {
    const row = (await removals(one))[0]
    return row && holds(row) ? row : undefined
  }, what)

export const isStopped = (row: RemovalRow): boolean => row.stopped !== null && row.lock_owner === null

/** `kind what`, of every audit record of removals, oldest first. */
export const chain = async (one: Pick<Case, 'store'>): Promise<string[]> => {
  const rows = await one.store.read(({ db }) =>
    db.selectFrom('audit').selectAll().where('kind', '<>', 'operator').orderBy('at').orderBy('id').execute(),
  )
  return rows.map((row) => {
    const body = JSON.parse(row.body) as { identity?: { nativeId: string }; absent?: { nativeId: string }; kind?: string }
    return `${row.kind} ${(body.identity ?? body.absent)?.nativeId ?? body.kind ?? ''}`
  })
}

export const findings = async (one: Case): Promise<string[]> => (await one.open()).map((row) => row.code).toSorted()

/** A person answers for what the removal misses. */
export const acknowledge = async (one: Case, reason: string): Promise<void> => {
  const { id } = await removalOf(one)
  const { fingerprint } = await getRemoval(one.engine.context, root, id)
  await acknowledgeAbsence(one.engine.context, approver, id, { fingerprint, reason })
}

/** A member is taken away by somebody else, past every rule of the cloud. @returns puts it back, without what it stood on */
export const vanish = (one: Case, id: string): (() => void) => {
  const seq = Number.parseInt(id.split('-')[1] ?? '', 16)
  const { database } = one.cloud
  const [row = {}] = database.all<Record<string, string | number | null>>('select * from resources where seq = ?', seq)
  database.run('delete from attachments where member = ? or target = ?', seq, seq)
  database.run('delete from resources where seq = ?', seq)
  const columns = Object.keys(row)
  return () => {
    const marks = columns.map(() => '?').join(', ')
    database.run(`insert into resources (${columns.join(', ')}) values (${marks})`, ...columns.map((column) => row[column] ?? null))
  }
}

/** Released, and stopped right after the machine is proved gone. */
export const afterMachine = async (one: Case, then: (ids: Ids) => void): Promise<Ids> => {
  const { lease, ids } = await groupOn(one)
  const stalled = gate()
  one.hooks.remove = async (resource, real) => {
    if (resource.kind !== 'machine') throw new Error('not before the test says so')
    const answer = await real()
    await stalled.promise
    return answer
  }
  await release(one, lease)
  await until(() => one.count('remove') === 1, 'the machine is asked for')
  then(ids)
  one.hooks.remove = undefined
  stalled.open()
  return ids
}
