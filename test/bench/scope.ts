/**
 * Fills one backend's scope by statements that make the rows inside the database: a million leases with their boxes in a minute rather than in half an hour.
 * The same rows as `seedLeases`, for benches of sweeps alone.
 */
import { CompiledQuery } from 'kysely'
import type { ScopeId } from '../../src/model/ids.ts'
import type { DialectName, Store } from '../../src/store/store.ts'

export interface Scope {
  scope: ScopeId
  /** ms relative to now. */
  createdAgoMs: number
  endsInMs: number
}

/** Ids as ours are made: those with a time in them grow, refs and leases begin at random, and end in a number that no other one has. */
const made: Record<DialectName, (from: number, to: number) => string> = {
  sqlite: (from, to) => `with recursive n(i) as (select ${from} union all select i + 1 from n where i + 1 < ${to})
    select printf('%012x', i) as stamp, lower(hex(randomblob(16))) as r from n`,
  postgresql: (from, to) =>
    `select lpad(to_hex(i), 12, '0') as stamp, md5(i || ' ' || random()) as r from generate_series(${from}, ${to - 1}) as s(i)`,
}

const statements = (dialect: DialectName, from: number, to: number, at: number, end: number, scope: string): string[] => [
  `insert into instances (id, project, backend, provider, scope, location, name, ref, state, lease_id, attempt_id, created_at, changed_at)
    select 'in_' || stamp || substr(r, 1, 20), 'default', 'local', 'process', '${scope}', 'local', 's-' || substr(r, 1, 12), 'r' || substr(r, 13, 6) || substr(stamp, 8), 'busy',
      'lh_' || substr(r, 1, 7) || substr(stamp, 8), 'at_' || stamp || substr(r, 1, 20), ${at}, ${at}
    from (${made[dialect](from, to)}) as made`,
  `insert into ledger (ref, project, owner_kind, owner_id, owner_name, parents, issued_at)
    select ref, project, 'instance', id, name, '{}', created_at from instances where ref not in (select ref from ledger) order by ref`,
  `insert into attempts (id, ref, instance_id, number, token, project, backend, scope, location, outcome, opened_at, called_at, deadline_at, kind, native_id,
      immutable_id, facts)
    select attempt_id, ref, id, 1, substr(id, 4) || substr(id, 4, 4), project, backend, scope, location, 'bound', created_at, created_at, created_at, 'box',
      ref || '-1', 'seeded:' || ref, '{}'
    from instances where attempt_id not in (select id from attempts) order by attempt_id`,
  `insert into leases (id, slug, project, backend, owner, provider, instance_id, state, keep, ttl_seconds, idle_seconds, labels, created_at, updated_at,
      last_touched_at, expires_at, fixed_id, request_hash, may_exist, due_at)
    select lease_id, name, project, backend, 'admin', provider, id, 'active', 0, 86400, 1800, '{}', created_at, created_at, created_at, ${end}, 0, '', 0, ${end}
    from instances where lease_id not in (select id from leases) order by lease_id`,
]

/** @param from how many there are already */
export const seedScope = async (store: Store, { scope, createdAgoMs, endsInMs }: Scope, from: number, to: number): Promise<void> => {
  const run = (db: Parameters<Parameters<Store['read']>[0]>[0]['db'], text: string) => db.executeQuery(CompiledQuery.raw(text))
  await store.write(async (tx) => {
    // The default of 2 MB would have every index page written many times.
    if (tx.dialect === 'sqlite') await run(tx.db, 'pragma cache_size = -2000000')
    for (const text of statements(tx.dialect, from, to, tx.now - createdAgoMs, tx.now + endsInMs, scope)) await run(tx.db, text)
  })
  // What autovacuum has done long before a table is of such a size.
  if (store.dialect === 'postgresql') await store.read(({ db }) => run(db, 'vacuum analyze'))
}
