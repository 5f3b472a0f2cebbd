import type { Migration } from './index.ts'

/** What has ended long since leaves the tables that are worked on; what is said of it for ever stands in a row of its own. */
export const retention: Migration = {
  number: 12,
  name: 'retention',
  mark: 'expand',
  statements: [
    `create table compacted (ref text primary key, project text not null, instance_id text not null, lease_id text, slug text not null, owner text,
      provider text not null, backend text not null, lease_state text, created_at bigint not null, ended_at bigint not null, compacted_at bigint not null)`,
    'create unique index compacted_lease on compacted (lease_id)',
    'create index compacted_slug on compacted (slug, created_at)',
    'create index instances_terminated on instances (terminated_at) where terminated_at is not null',
    "create index findings_resolved on findings (resolved_at) where state = 'resolved'",
    'create index sweeps_started on sweeps (started_at)',
    // Which sweeps are named by a removal that they began, or went on with.
    'create index removals_begun on removals (scope, begun_at) where begun_at is not null',
    // The end of which its holder was warned that it comes near (case G9).
    'alter table leases add column idle_warned_for bigint',
  ],
}
