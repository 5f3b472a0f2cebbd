/** The end of a world: it settles, and then everything that is left must be accounted for. */
import { providerName } from './cloud.ts'
import { nextDueAt } from './database.ts'
import { worldScope, type Thing } from './things.ts'
import type { World } from './world.ts'

const mostLeaps = 720
const longestLeapMs = 600_000
/** What changed so shortly before a listing may not show in it yet. */
const longestMarginMs = 20_000

interface Open {
  instances: number
  removals: number
  orphans: number
}
/** What a person was told of stands until that person does something. */
const told = (target: string): string =>
  `exists (select 1 from removals h where h.ref = ${target}.ref and h.held_by is not null and h.state <> 'gone')
  or exists (select 1 from findings f where f.state = 'open' and f.code in ('contradiction', 'removal-needs-person') and f.evidence like '%' || ${target}.ref || '%')`
const openRows = `select
  (select count(*) from instances i where (state in ('pending', 'provisioning') or (state = 'terminating' and gave_up_at is null)) and not (${told('i')})) as instances,
  (select count(*) from removals r where state not in ('gone', 'gave-up', 'closed') and not (${told('r')})) as removals,
  (select count(*) from findings o where state = 'open' and code = 'orphan' and not (${told('o')})) as orphans`
const sweepsEnded =
  "select count(*) as all_, coalesce(sum(outcome = 'clean'), 0) as clean from sweeps where started_at > max(?, coalesce((select max(changed_at) from instances), 0)) + ?"

/** Until nothing moves any more, and sweeps after the last change found nothing to do. @returns whether it came to rest */
const settle = async ({ database, universe, cloud, settings, now }: World): Promise<boolean> => {
  for (let leaps = 0; leaps < mostLeaps; leaps++) {
    const open = database.rows<Open>(openRows)[0]!
    const surfaced = Math.max(
      0,
      ...cloud.things.filter((thing) => thing.maker === 'ours').map((thing) => Math.max(thing.existsAt, thing.visibleAt)),
    )
    const calm = open.instances === 0 && open.removals === 0 && surfaced <= now() && (settings.mode !== 'delete' || open.orphans === 0)
    if (calm) {
      // Without a ref no backend is enrolled.
      if (settings.mode === 'off' || database.rows('select 1 from ledger').length === 0) return true
      const sweeps = database.rows<{ all_: number; clean: number }>(sweepsEnded, surfaced, longestMarginMs)[0]!
      if (sweeps.clean >= 1 || sweeps.all_ >= 3) return true
    }
    const at = nextDueAt(database) ?? now() + longestLeapMs
    await universe.leap(Math.min(longestLeapMs, Math.max(1_000, at - now())))
  }
  return false
}

/** Who knows of it: a holder, a removal under way, or a person who was told. */
const isAccountedFor = ({ database }: World, thing: Thing): boolean => {
  const { immutableId, nativeId, location } = thing.resource
  const any = (query: string, ...values: string[]): boolean => database.rows(query, ...values).length > 0
  return (
    any(
      `select 1 from attempts a join instances i on i.id = a.instance_id and i.attempt_id = a.id join leases l on l.id = i.lease_id
       where (a.immutable_id = ? or a.token = ?) and i.state = 'busy' and (l.state = 'active' or (l.state = 'released' and l.release_deletes = 0))`,
      immutableId,
      thing.token ?? '',
    ) ||
    any(`select 1 from findings where state = 'open' and target_id = ?`, `${providerName}/${location}/${nativeId}`) ||
    any(`select 1 from findings where state = 'open' and evidence like ?`, `%"immutableId":"${immutableId}"%`) ||
    any("select 1 from removals where ref = ? and held_by is not null and state <> 'gone'", thing.ref) ||
    any(
      `select 1 from findings where state = 'open' and code in ('contradiction', 'removal-needs-person') and evidence like ?`,
      `%${thing.ref}%`,
    )
  )
}

/** Columns that hold a time; an end may lie ahead. */
const timesOf = (world: World): void => {
  const { database, watch, now } = world
  const tables = database.rows<{ name: string }>("select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'")
  for (const { name } of tables) {
    if (['world', 'violations', 'clock', 'schema_version'].includes(name)) continue
    const columns = database.rows<{ name: string }>(`select name from pragma_table_info('${name}')`).map((row) => row.name)
    // `held_since` is 0 where no fork was ever made.
    for (const column of columns.filter((each) => each !== 'held_since' && /(?:^|_)(?:at|since|until)$/.test(each))) {
      const latest = /due|until|expires|retry|deadline/.test(column) ? now() + 3 * 86_400_000 : now()
      const bad = database.rows<{ at: number }>(
        `select ${column} as at from ${name} where ${column} is not null and (${column} < ? or ${column} > ?) limit 1`,
        world.startedAt - 600_000,
        latest,
      )[0]
      if (bad) watch.violations.push({ invariant: 'I4', what: `${name}.${column} is ${bad.at}, and the time is ${now()}` })
    }
  }
}

/** Whatever was written down is chained within seconds, without a gap. */
const sealed = async ({ database, universe, watch, now }: World): Promise<void> => {
  const since = now()
  // A sealer that died may hold the chain for a while yet.
  for (let leaps = 0; leaps < 3; leaps++) await universe.leap(3_000)
  const [chain] = database.rows<{ open: number; sealed: number; last: number }>(
    'select coalesce(sum(seq is null and at <= ?), 0) as open, count(seq) as sealed, coalesce(max(seq), 0) as last from audit',
    since,
  )
  if (chain && (chain.open > 0 || chain.last !== chain.sealed))
    watch.violations.push({
      invariant: 'I7',
      what: `${chain.open} audit records are not sealed, ${chain.sealed} are, up to number ${chain.last}`,
    })
}

export const judgeEnd = async (world: World): Promise<void> => {
  const { database, cloud, watch } = world
  const settled = await settle(world)
  const says = (invariant: string, what: string): void => void watch.violations.push({ invariant, what })
  const ledger = new Set(database.rows<{ ref: string }>('select ref from ledger').map((row) => row.ref))
  for (const ref of watch.refs) if (!ledger.has(ref)) says('I2', `ref ${ref} is not in the ledger any more`)
  for (const thing of cloud.things) {
    if (thing.endedBy === 'engine' && thing.maker !== 'ours')
      says('I6', `${thing.resource.nativeId} of ${worldScope} was ended, and was never ours`)
    if (thing.maker === 'ours' && cloud.exists(thing) && !isAccountedFor(world, thing))
      says('leak', `${thing.resource.kind} ${thing.resource.nativeId} (${thing.resource.immutableId}) is there, and nobody knows`)
  }
  if (!settled) {
    const stuck = database.rows<{ id: string; state: string; error: string | null }>(
      `select id, state, error from removals r where state not in ('gone', 'gave-up', 'closed') and not (${told('r')}) limit 1`,
    )[0]
    const waiting = database.rows<{ id: string; state: string }>(
      `select id, state from instances i where (state in ('pending', 'provisioning') or (state = 'terminating' and gave_up_at is null)) and not (${told('i')}) limit 1`,
    )[0]
    const orphan = database.rows<{ id: string; message: string }>(
      `select target_id as id, message from findings o where state = 'open' and code = 'orphan' and not (${told('o')}) limit 1`,
    )[0]
    if (stuck) says('rest', `removal ${stuck.id} is ${stuck.state}: ${stuck.error}`)
    else if (waiting) says('rest', `instance ${waiting.id} is ${waiting.state}`)
    else if (orphan) says('rest', `${orphan.id} is not taken back: ${orphan.message}`)
    else says('rest', 'no sweep was clean after the last change')
  }
  timesOf(world)
  await sealed(world)
}
