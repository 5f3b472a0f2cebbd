import type { Migration } from './index.ts'

/** Removals that were gone on with: when a sweep began them first stays, beside when one last did (leases R88). */
export const continued: Migration = {
  number: 10,
  name: 'continued',
  mark: 'expand',
  statements: [
    // When it was last gone on with after it had been dropped or given up; null: never. The limit of a day counts it then, and its ground is of then.
    'alter table removals add column continued_at bigint',
  ],
}
