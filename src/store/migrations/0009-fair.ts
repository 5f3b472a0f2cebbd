import type { Migration } from './index.ts'

/** Looks that would else read every row: what is due of one project, while others have much more due; and whichever lease had a slug. */
export const fair: Migration = {
  number: 9,
  name: 'fair',
  mark: 'expand',
  statements: [
    'create index instances_due_project on instances (project, due_at) where due_at is not null',
    'create index leases_due_project on leases (project, due_at) where due_at is not null',
    'create index removals_due_project on removals (project, due_at) where due_at is not null',
    'create index cleanups_due_project on cleanups (project, due_at) where due_at is not null',
    'create index leases_slugs on leases (slug, created_at)',
  ],
}
