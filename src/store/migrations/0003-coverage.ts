import type { Migration } from './index.ts'

/** What sweeps remember from one listing to the next: how far each cell was proved, which accounts do not answer, and what a person let pass. */
export const coverage: Migration = {
  number: 3,
  name: 'coverage',
  mark: 'expand',
  statements: [
    // One row for each location and kind of a backend's account: up to when it was provably seen, and how many tags could be read there.
    `create table cells (
      project text not null,
      backend text not null,
      scope text not null,
      location text not null,
      kind text not null,
      state text not null,
      why text,
      listed_at bigint not null,
      clean_at bigint,
      readable bigint,
      unreadable text not null default '[]',
      primary key (project, backend, scope, location, kind)
    )`,
    // One row for each account whose listings fail, shared by all backends in it.
    `create table circuits (
      provider text not null,
      scope text not null,
      failures bigint not null,
      failed_at bigint not null,
      open_until bigint,
      error text not null,
      primary key (provider, scope)
    )`,
    // JSON: who let which implausible counts pass, for one sweep.
    'alter table cleanups add column let_pass text',
    // The first failure of a removal is kept when later tries go well: trust in a kind of removal begins afresh after it.
    'alter table removals add column first_failed_at bigint',
    // One that gave up stands until its absence is proved, and what it left may be found and taken back by another (orphans R91, R98).
    'drop index removals_open',
    "create unique index removals_open on removals (attempt_id) where state not in ('gone', 'gave-up')",
  ],
}
