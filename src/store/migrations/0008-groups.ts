import type { Migration } from './index.ts'

/** Removals of whole groups: what they would take and what they bound, why they stand still, and what a person said of that (leases R76-R91). */
export const groups: Migration = {
  number: 8,
  name: 'groups',
  mark: 'expand',
  statements: [
    // JSON list of identities: what the sweep that ordered it judged. Nothing of it is bound yet.
    'alter table removals add column planned text',
    // JSON: labels' hashes and edges of each member, as they were right before the first deletion.
    'alter table removals add column baseline text',
    // JSON: why it waits for a person, and what is missing.
    'alter table removals add column stopped text',
    // JSON list: the absences that a person acknowledged.
    "alter table removals add column acknowledged text not null default '[]'",
    // Quick tries of the member whose turn it is, in a row.
    'alter table removals add column tries bigint not null default 0',
    // When a sweep began it, or it was gone on with: for the limit of a day, and for what it stands on.
    'alter table removals add column begun_at bigint',
    'alter table removals add column closed_at bigint',
    'alter table removals add column closed_by text',
    'alter table removals add column closed_reason text',
    // What a person closed is not open: if something of it turns up, another removal may be ordered.
    'drop index removals_open',
    "create unique index removals_open on removals (attempt_id) where state not in ('gone', 'gave-up', 'closed')",
    // Of what gave up and is tried by another removal by now, only that one goes on (orphans R91).
    `update removals set state = 'closed', due_at = null, lock_fence = lock_fence + 1, closed_by = 'system',
      closed_reason = 'another removal of the same attempt goes on'
      where state = 'gave-up' and exists (select 1 from removals as other where other.attempt_id = removals.attempt_id
        and (other.state not in ('gone', 'gave-up')
          or (other.state = 'gave-up' and (other.opened_at > removals.opened_at or (other.opened_at = removals.opened_at and other.id > removals.id)))))`,
  ],
}
