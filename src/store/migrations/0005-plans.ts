import type { Migration } from './index.ts'

/** Plans of removals that a person looks through and approves, each with what it would take back and why. */
export const plans: Migration = {
  number: 5,
  name: 'plans',
  mark: 'expand',
  statements: [
    // entries: JSON, what it would take back, with the proof of each; pending: JSON, the targets neither begun nor dropped yet; dropped: JSON, targets.
    `create table plans (id text primary key, project text not null, backend text not null, provider text not null, scope text not null,
      entries text not null, pending text not null, dropped text not null, ours bigint not null, why text, state text not null, made_by text not null,
      made_at bigint not null, seen_at bigint not null, approved_by text, approved_at bigint, approval_reason text, settled_at bigint)`,
    'create index plans_of_backend on plans (project, backend, state)',
  ],
}
