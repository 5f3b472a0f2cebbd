import type { Migration } from './index.ts'

/** Boxes that are kept ready: whose they are, how long each lives, and which are being wiped for their next holder. */
export const fleets: Migration = {
  number: 13,
  name: 'fleets',
  mark: 'expand',
  statements: [
    `create table fleets (
      id text primary key, project text not null, name text not null, backend text not null, size bigint not null, ttl_seconds bigint not null,
      labels text not null default '{}', created_by text not null, created_at bigint not null,
      changed_at bigint not null, paused_at bigint, held_at bigint, held_why text, deleted_at bigint,
      due_at bigint, lock_fence bigint not null default 0, lock_owner text, lock_until bigint)`,
    'create unique index fleets_names on fleets (project, name)',
    'create index fleets_due on fleets (due_at) where due_at is not null',
    'create index fleets_due_project on fleets (project, due_at) where due_at is not null',
    // The fleet that an instance is of, by its name in the project.
    'alter table instances add column fleet text',
    // When it ends by itself, as its dead-man clock was armed last.
    'alter table instances add column dead_at bigint',
    // When it was last seen alive while nobody had it.
    'alter table instances add column checked_at bigint',
    // Given back, and not yet proved free of its former holder.
    'alter table instances add column wiping_since bigint',
    // Leases that it has had.
    'alter table instances add column served bigint not null default 0',
    'create index instances_fleet on instances (project, fleet, state, changed_at) where fleet is not null',
    'alter table leases add column fleet text',
    // Its box went back to its fleet, wiped and proved so.
    'alter table leases add column returned_at bigint',
  ],
}
