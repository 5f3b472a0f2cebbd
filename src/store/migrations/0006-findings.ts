import type { Migration } from './index.ts'

/** What is about a resource is about it in its account, and told to its project: ids of two accounts may be the same, and two projects may share one. */
export const findings: Migration = {
  number: 6,
  name: 'findings',
  mark: 'expand',
  statements: [
    'drop index findings_open',
    `create unique index findings_open on findings (code, target_type, target_id, (coalesce(project, '')),
      (case when target_type = 'resource' then coalesce(scope, '') else '' end)) where state = 'open'`,
  ],
}
