import type { Migration } from './index.ts'

/** How many calls each account gets, shared by all replicas, and which rows wait for that. */
export const budgets: Migration = {
  number: 11,
  name: 'budgets',
  mark: 'expand',
  statements: [
    // class: create, read, delete, or all for the account as a whole. Calls are in thousandths, rates in thousandths a second.
    `create table budgets (provider text not null, scope text not null, class text not null, rate bigint, tokens bigint not null, at bigint not null,
      blocked_until bigint, throttled_at bigint, throttles bigint not null, peak bigint, primary key (provider, scope, class))`,
    // Put off until then because of the rate: it waits for as long as its row is due at that very moment.
    'alter table instances add column waits_until bigint',
    'alter table removals add column waits_until bigint',
    'alter table cleanups add column waits_until bigint',
  ],
}
