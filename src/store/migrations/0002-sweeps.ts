import type { Migration } from './index.ts'

/** What the schedule of sweeps and the quarantine of findings need beside the first schema. */
export const sweeps: Migration = {
  number: 2,
  name: 'sweeps',
  mark: 'expand',
  statements: [
    'alter table cleanups add column id text',
    "update cleanups set id = project || '/' || backend",
    'create unique index cleanups_id on cleanups (id)',
    // The last listing, the last full sweep, and the mode that the last clean one ran in.
    'alter table cleanups add column listed_at bigint',
    'alter table cleanups add column outcome text',
    // When a person asked for a sweep: it lists whatever the gate says.
    'alter table cleanups add column requested_at bigint',
    // Quarantine: since when the fingerprint stands, and in how many complete inventories it was seen.
    'alter table findings add column backend text',
    'alter table findings add column ref text',
    'alter table findings add column attempt_id text',
    'alter table findings add column standing_since bigint',
    'alter table findings add column complete_sightings bigint not null default 0',
    'alter table findings add column last_complete_at bigint',
    'alter table findings add column sweep_id text',
    'create index findings_ref on findings (ref)',
    'create index findings_backend on findings (project, backend, state)',
    'create index ledger_project on ledger (project, owner_closed_at)',
    // Covering: a sweep looks at every box there is, in the order of refs, and must not fetch a row for each.
    'create index instances_bound on instances (project, backend, ref, state, changed_at, attempt_id, location)',
    'create index instances_look on instances (ref, project, attempt_id, id, state)',
    'create index attempts_look on attempts (ref, id, token, immutable_id, native_id, location, kind, scope)',
    'create index instances_changed on instances (project, changed_at)',
    'create index removals_attempt on removals (attempt_id)',
    'create index removals_opened on removals (scope, opened_at)',
  ],
}
