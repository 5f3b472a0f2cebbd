import type { Migration } from './index.ts'

/** What beats and crowds of removals cost: where their rows find room, and which of their looks find nothing. */
export const speed: Migration = {
  number: 14,
  name: 'speed',
  mark: 'expand',
  statements: [
    // Every proof of absence looks whether an earlier removal of the same attempt gave up; next to none did.
    "create index removals_gave_up on removals (attempt_id) where state = 'gave-up'",
  ],
  postgresql: [
    // A beat changes no indexed column: with room on the row's own page it writes no index. The same of the end of an attempt. It holds for new pages.
    'alter table leases set (fillfactor = 80)',
    'alter table attempts set (fillfactor = 90)',
  ],
}
