import type { Migration } from './index.ts'

/** What the database knows of itself: where it lived, how often it was started, the keys of its keyed tag, and what stops its removals. */
export const installation: Migration = {
  number: 7,
  name: 'installation',
  mark: 'expand',
  statements: [
    // Counted up at each start and adoption.
    'alter table installation add column epoch bigint not null default 0',
    // JSON of a `Place`; null: no start has looked yet.
    'alter table installation add column place text',
    // Counted up while it runs, and written beside the file: a file that was put back has the older one.
    'alter table installation add column mark bigint not null default 0',
    'alter table installation add column adopted_at bigint',
    // After a fork: whose history is in here (JSON list of ids), and since when this one holds anything.
    "alter table installation add column former text not null default '[]'",
    'alter table installation add column held_since bigint not null default 0',
    'create table keys (id text primary key, secret text not null, created_at bigint not null, retired_at bigint)',
    // `scope` is `*` where all are stopped. evidence: JSON; epoch: the newest that was seen.
    `create table stops (scope text primary key, code text not null, why text not null, evidence text not null, epoch bigint,
      since_at bigint not null)`,
    // Which key its keyed tag was made with; null: none was written.
    'alter table attempts add column mac_key text',
  ],
}
