/**
 * The watch over a world: what must hold at every call that an engine makes, and at the end. It looks at committed rows from outside, and at the truth that
 * only the cloud knows; it asks no engine.
 */
import type { CreateRequest, Provider, ResourceIdentity } from '../../../src/providers/contract.ts'
import { heldBy, resourceKey, type HoldFacts } from '../../../src/model/removal.ts'
import { keepLabel } from '../../../src/model/keep.ts'
import type { LyingCloud } from './cloud.ts'
import type { Violation, WorldDatabase } from './database.ts'
import type { Life } from './life.ts'
import { worldScope } from './things.ts'

export interface Watch {
  violations: Violation[]
  /** The provider as one engine has it: its calls are steps of that engine's life. */
  guard(provider: Provider, life: Life, who: () => string): Provider
  /** Looks at what sweeps have begun so far: none more than so many, but for what was approved, and of that nothing else (I8). */
  bounded(perSweep: number): void
  /** Refs that a create was ever called for. */
  refs: Set<string>
}

interface IntentRow {
  at: number
  fence: number
  removal: string
  attempt: string
  cause: string
}
interface RemovalRow {
  lock_fence: number
  lock_owner: string | null
  lease_id: string | null
  instance_id: string
  project: string
  provider: string
  location: string
}

const intentsOf = `select at, removal_id as removal, json_extract(body, '$.fence') as fence, json_extract(body, '$.attempt') as attempt,
  json_extract(body, '$.cause') as cause from audit a
  where kind = 'intent' and json_extract(body, '$.identity.immutableId') = ?
  and not exists (select 1 from audit o where o.kind = 'outcome' and o.intent_id = a.id) order by id desc`

const found = (path: string): string => `json_extract(r.evidence, '$.found.${path}')`
const approved = `exists (select 1 from plans p where p.id = ${found('plan.id')} and p.approved_at is not null)`
const begunOf = `select ${found('sweep')} as sweep, count(*) as begun from removals r where ${found('sweep')} is not null and not ${approved}
  group by sweep`
const notOfPlan = `select ${found('plan.id')} as plan, r.ref from removals r where ${approved} and not exists (
  select 1 from plans p, json_each(p.entries) e where p.id = ${found('plan.id')}
  and json_extract(e.value, '$.ref') = r.ref and json_extract(e.value, '$.fingerprint') = ${found('fingerprint')})`

export const openWatch = (database: WorldDatabase, cloud: LyingCloud, now: () => number): Watch => {
  const violations: Violation[] = []
  const refs = new Set<string>()
  const says = (invariant: string, what: string): void => void violations.push({ invariant, what })
  /** Calls to remove it, by immutable id. */
  const removes = new Map<string, number>()

  const beforeCreate = (request: CreateRequest): void => {
    refs.add(request.ref)
    const [row] = database.rows<{ called_at: number | null; outcome: string; ledger: string | null; owner: string | null }>(
      `select a.called_at, a.outcome, l.ref as ledger, i.id as owner from attempts a left join ledger l on l.ref = a.ref
       left join instances i on i.id = a.instance_id where a.token = ?`,
      request.attemptToken,
    )
    if (!row) says('I1', `create was called for ref ${request.ref}, and its attempt is not committed`)
    else if (row.ledger === null || row.owner === null) says('I1', `create was called for ref ${request.ref} without ledger entry or owner`)
    else if (row.called_at === null || row.outcome !== 'open')
      says('I1', `create was called for ref ${request.ref}, and its attempt does not say so (${row.outcome})`)
  }

  const standing = (before: number): { holds: HoldFacts[]; frozen: string[] } => ({
    holds: database
      .rows<{ id: string; type: HoldFacts['targetType']; target: string }>(
        `select id, target_type as type, target_id as target from holds
         where removed_at is null and created_at < ? and (until_at is null or until_at > ?)`,
        before,
        now(),
      )
      .map((row) => ({ id: row.id, targetType: row.type, targetId: row.target })),
    frozen: database.rows<{ scope: string }>('select scope from freezes where created_at < ?', before).map((row) => row.scope),
  })

  const wasFound = (immutableId: string): boolean =>
    database.rows<IntentRow>(intentsOf, immutableId)[0]?.cause.startsWith('orphan.') === true

  const beforeRemove = (resource: ResourceIdentity, who: string): void => {
    const { immutableId, nativeId } = resource
    const calls = (removes.get(immutableId) ?? 0) + 1
    removes.set(immutableId, calls)
    const [intent] = database.rows<IntentRow>(intentsOf, immutableId)
    if (!intent) return says('I7', `${nativeId} is removed, and no intent without an outcome is committed`)
    const [removal] = database.rows<RemovalRow>('select * from removals where id = ?', intent.removal)
    if (!removal || removal.lock_fence !== intent.fence || removal.lock_owner !== who)
      return says(
        'I3',
        `${who} removes ${nativeId} under fence ${intent.fence}, and ${removal?.lock_owner} has fence ${removal?.lock_fence}`,
      )
    const thing = cloud.byImmutableId(immutableId)
    if (thing?.maker !== 'ours') says('I6', `${nativeId} is removed, and no attempt of ours made it: ${thing?.maker}`)
    const { holds, frozen } = standing(intent.at)
    const target = {
      resourceKeys: [resourceKey(removal.provider, resource.location, nativeId)],
      instanceId: removal.instance_id,
      leaseId: removal.lease_id,
      project: removal.project,
      scope: worldScope,
    }
    const holder = heldBy(target, holds, frozen)
    if (holder !== null) says('I10', `${nativeId} is removed, and ${holder} stood before the intent`)
    const [lease] = database.rows<{ id: string }>(
      `select l.id from leases l join instances i on i.id = l.instance_id where i.attempt_id = ? and l.state = 'active' and l.expires_at > ?
       and (l.release_deletes is null or l.release_deletes = 0)`,
      intent.attempt,
      now(),
    )
    if (lease) says('I10', `${nativeId} is removed, and lease ${lease.id} has it`)
    const [retained] = database.rows<{ id: string }>(
      `select l.id from leases l join instances i on i.id = l.instance_id where i.attempt_id = ? and l.state = 'released' and l.release_deletes = 0`,
      intent.attempt,
    )
    if (retained) says('I10', `${nativeId} is removed, and lease ${retained.id} retains it`)
  }

  const bounded = (perSweep: number): void => {
    for (const { sweep, begun } of database.rows<{ sweep: string; begun: number }>(begunOf))
      if (begun > perSweep) says('I8', `sweep ${sweep} began ${begun} removals, and its limit is ${perSweep}`)
    for (const { plan, ref } of database.rows<{ plan: string; ref: string }>(notOfPlan))
      says('I8', `plan ${plan} was approved, and began ${ref}, which is not in it as it was found then`)
  }

  const guard = (provider: Provider, life: Life, who: () => string): Provider => {
    /** What this engine was shown last: does somebody protect it, or could that not be read? */
    const kept = new Map<string, boolean>()
    const call = async <T>(check: () => void, make: () => Promise<T>): Promise<T> => {
      // Whoever stands still right before a call is found out at the call itself: that is no place to stall, only one to die.
      await life.beforeCall()
      for (let open = database.gate.shut(); open !== undefined; open = database.gate.shut()) await open
      check()
      life.calls++
      try {
        const answer = await make()
        await life.step()
        return answer
      } catch (error) {
        await life.step()
        throw error
      } finally {
        life.calls--
      }
    }
    const nothing = (): void => {}
    const methods: Pick<Provider, 'create' | 'find' | 'read' | 'remove' | 'scope'> = {
      scope: (config, context) => call(nothing, () => provider.scope(config, context)),
      create: (request, context) =>
        call(
          () => beforeCreate(request),
          () => provider.create(request, context),
        ),
      find: (ref, config, context) => call(nothing, () => provider.find(ref, config, context)),
      read: (resource, config, context) =>
        call(nothing, async () => {
          const read = await provider.read(resource, config, context)
          if (read.kind === 'present') kept.set(resource.immutableId, read.found.labels == null || keepLabel(read.found.labels) !== null)
          return read
        }),
      remove: (resource, config, context) =>
        call(
          () => {
            beforeRemove(resource, who())
            if (kept.get(resource.immutableId) === true && wasFound(resource.immutableId))
              says('I10', `${resource.nativeId} is removed on the word of a sweep, and its last read showed a keep label`)
          },
          () => provider.remove(resource, config, context),
        ),
    }
    const list: Provider['list'] = async function* (locations, config, context) {
      life.calls++
      try {
        for await (const item of provider.list!(locations, config, context)) {
          await life.step()
          yield item
        }
      } finally {
        life.calls--
      }
    }
    return { ...provider, ...methods, list }
  }
  return { violations, guard, bounded, refs }
}
