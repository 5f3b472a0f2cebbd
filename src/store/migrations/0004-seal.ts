import type { Migration } from './index.ts'

/** The chain over the audit records, and what each removal stands on. */
export const seal: Migration = {
  number: 4,
  name: 'seal',
  mark: 'expand',
  statements: [
    // One row: how far the audit is chained. It remembers the end, so that records cut off there are missed.
    `create table chain (id text primary key, seq bigint not null, hash text not null, sealed_at bigint, lock_fence bigint not null default 0,
      lock_owner text, lock_until bigint)`,
    `insert into chain (id, seq, hash) values ('audit', 0, '${'0'.repeat(64)}')`,
    'create unique index audit_seq on audit (seq) where seq is not null',
    'create index audit_unsealed on audit (at, id) where seq is null',
    'create index audit_project on audit (project, id)',
    // JSON: who ordered it, and for what a sweep found the finding, the sweep, the plan and the proofs. Written once, when it is opened.
    'alter table removals add column evidence text',
  ],
}
