/**
 * What people do about what sweeps find: they label it, write plans down and approve them; and rows are lost, so that there is something to find. Drawn from a
 * chance of its own, beside what everybody else does.
 */
import { approvePlan, makePlans } from '../../../src/engine/admin/index.ts'
import { root } from '../../support/engine.ts'
import type { LyingCloud } from './cloud.ts'
import type { Crew } from './crew.ts'
import type { WorldDatabase } from './database.ts'
import type { Chance } from './random.ts'
import type { Thing } from './things.ts'

export interface Scene {
  chance: Chance
  cloud: LyingCloud
  crew: Crew
  database: WorldDatabase
  now: () => number
  /** Nothing would ever find what is abandoned in it. */
  unswept: boolean
  count: (what: string) => void
}

const mostAbandoned = 4
const idle = `select l.id as lease, i.id as instance, i.ref from leases l join instances i on i.id = l.instance_id
  where l.state = 'active' and i.state = 'busy' and l.lock_owner is null and i.lock_owner is null
  and not exists (select 1 from removals r where r.instance_id = i.id) order by l.id limit ${mostAbandoned}`

export interface People {
  /** Beside what else happens. */
  meanwhile(): void
  /** One step of those who look through what sweeps found. */
  review(): void
  /** A plan is written down, and nobody looks at it yet. */
  plan(): void
  /** Something in the newest plan is not any more what was written down; whoever approves that plan, how late it may be, is to get what stands as it was. */
  overtake(): (() => void) | null
  abandon(): void
}

export const makePeople = ({ chance, cloud, crew, database, now, unswept, count }: Scene): People => {
  const ask = (request: Parameters<Crew['ask']>[0]): void => crew.ask(request, () => count('refused'))
  /** A row says that it ended, and its machine runs on. */
  const abandon = (): void => {
    for (const { lease, instance, ref } of database.rows<{ lease: string; instance: string; ref: string }>(idle)) {
      const at = now()
      database.run(
        `update instances set state = 'terminated', changed_at = ?, terminated_at = ?, due_at = null, lock_fence = lock_fence + 1 where id = ?`,
        at,
        at,
        instance,
      )
      database.run(
        `update leases set state = 'failed', failure_code = 'resource_missing', ended_at = ?, due_at = null, lock_fence = lock_fence + 1 where id = ?`,
        at,
        lease,
      )
      database.run(`update attempts set outcome = 'absent', ended_at = ? where instance_id = ?`, at, instance)
      database.run('update ledger set owner_closed_at = ? where ref = ?', at, ref)
      count('abandoned')
    }
  }
  const relabel = (change: (thing: Thing) => Record<string, string>): void => {
    const ours = cloud.things.filter((thing) => thing.maker === 'ours' && cloud.exists(thing))
    if (ours.length === 0) return
    const thing = chance.of(ours)
    thing.labels = change(thing)
    if (thing.labels['keep'] !== undefined) count('kept')
  }
  const newest = (): { id: string; entries: string } | undefined =>
    database.rows<{ id: string; entries: string }>(
      "select id, entries from plans where state = 'waiting' order by made_at desc, id limit 1",
    )[0]
  const approve = (plan = newest()): void => {
    if (plan)
      ask(async ({ engine }) => {
        await approvePlan(engine.context, root, plan.id, 'looked through')
        count('approved')
      })
  }

  const plan = (): void => {
    ask(async ({ engine }) => {
      for (const _ of await makePlans(engine.context, root, {}, new AbortController().signal)) count('planned')
    })
  }
  const keep = (): void => relabel((thing) => ({ ...thing.labels, keep: 'true' }))
  const unkeep = (): void => relabel(({ labels: { keep: _, ...rest } }) => rest)
  const rename = (): void => relabel((thing) => ({ ...thing.labels, team: `t${chance.pick(5)}` }))

  return {
    meanwhile() {
      const what = chance.weighted({ nothing: 60, abandon: unswept ? 0 : 6, keep: 4, unkeep: 2, rename: 4 })
      if (what !== 'nothing') ({ abandon, keep, unkeep, rename })[what]()
    },
    plan,
    overtake() {
      const named = newest()
      const refs = new Set((JSON.parse(named?.entries ?? '[]') as { ref: string }[]).map(({ ref }) => ref))
      const planned = cloud.things.filter((thing) => cloud.exists(thing) && thing.tags.ref !== null && refs.has(thing.tags.ref))
      if (named === undefined || planned.length === 0) return null
      const thing = chance.of(planned)
      thing.labels = { ...thing.labels, team: `t${now()}` }
      count('overtaken')
      return () => approve(named)
    },
    review() {
      ;({ plan, approve: () => approve(), keep, rename, abandon })[
        chance.weighted({ plan: 6, approve: 8, keep: 1, rename: 3, abandon: 1 })
      ]()
    },
    abandon,
  }
}
