/**
 * What we know of many refs, in one statement (orphans R46, R47): owner and ledger row commit together, so no ref can look ownerless while
 * its instance is being committed.
 */
import { CompiledQuery } from 'kysely'
import type { AttemptEvidence, RefEvidence, RemovalEvidence } from '../model/evidence.ts'
import { keepOfLease } from '../model/keep.ts'
import { isOpenRemoval } from '../model/removal.ts'
import { systemActor } from '../model/removal-evidence.ts'
import { membersIn, progressIn, whyUnreadable } from '../model/removal-record.ts'
import type { InstanceState, LeaseState, RemovalState } from '../model/wire.ts'
import type { Session } from './store.ts'

interface Joined {
  ref: string
  project: string
  owner_id: string
  owner_name: string
  issued_at: number
  owner_closed_at: number | null
  instance_id: string | null
  instance_state: InstanceState | null
  changed_at: number | null
  terminated_at: number | null
  gave_up_at: number | null
  bound_attempt_id: string | null
  attempt_id: string | null
  number: number
  token: string
  scope: string
  location: string
  outcome: AttemptEvidence['outcome']
  opened_at: number
  deadline_at: number
  ended_at: number | null
  kind: string | null
  native_id: string | null
  immutable_id: string | null
  mac_key: string | null
  lease_id: string | null
  lease_state: LeaseState | null
  release_deletes: number | null
  fleet: string | null
  lease_keep: number | null
  lease_labels: string | null
  removal_id: string | null
  removal_state: RemovalState | null
  version: number | null
  identity: string | null
  planned: string | null
  progress: string | null
  baseline: string | null
  closed_at: number | null
  closed_by: string | null
  closed_reason: string | null
}

const text = (among: string): string => `select l.ref, l.project, l.owner_id, l.owner_name, l.issued_at, l.owner_closed_at,
  i.id as instance_id, i.state as instance_state, i.changed_at, i.terminated_at, i.gave_up_at, i.attempt_id as bound_attempt_id,
  a.id as attempt_id, a.number, a.token, a.scope, a.location, a.outcome, a.opened_at, a.deadline_at, a.ended_at, a.kind, a.native_id, a.immutable_id, a.mac_key,
  s.id as lease_id, s.state as lease_state, s.release_deletes, i.fleet, s.keep as lease_keep, s.labels as lease_labels,
  r.id as removal_id, r.state as removal_state, r.version, r.identity, r.planned, r.progress, r.baseline,
  r.closed_at, r.closed_by, r.closed_reason
  from ledger l
  left join instances i on i.ref = l.ref
  left join attempts a on a.ref = l.ref
  left join leases s on s.id = i.lease_id
  left join removals r on r.attempt_id = a.id
  where l.ref in (${among})`

const texts = {
  sqlite: text('select value from json_each(?)'),
  postgresql: text('select json_array_elements_text($1::json)'),
}

const attemptOf = (row: Joined, id: string): AttemptEvidence => ({
  id,
  number: row.number,
  token: row.token,
  scope: row.scope,
  location: row.location,
  outcome: row.outcome,
  openedAt: row.opened_at,
  deadlineAt: row.deadline_at,
  endedAt: row.ended_at,
  kind: row.kind,
  nativeId: row.native_id,
  immutableId: row.immutable_id,
  macKey: row.mac_key,
})

const removalOf = (row: Joined, id: string): RemovalEvidence => ({
  id,
  attemptId: row.attempt_id ?? '',
  open: row.removal_state !== null && isOpenRemoval(row.removal_state),
  bound: membersIn(row.identity) ?? [],
  progress: progressIn(row.progress) ?? [],
  unreadable: whyUnreadable({ ...row, version: row.version ?? 0, progress: row.progress ?? '[]' }),
  closed:
    row.closed_at === null || row.closed_by === null || row.closed_by === systemActor
      ? null
      : { by: row.closed_by, reason: row.closed_reason ?? '', at: row.closed_at },
})

interface Growing extends RefEvidence {
  attempts: AttemptEvidence[]
  removals: RemovalEvidence[]
}

const begin = (row: Joined, readAt: number): Growing => ({
  ref: row.ref,
  readAt,
  ledger: {
    project: row.project,
    ownerId: row.owner_id,
    ownerName: row.owner_name,
    issuedAt: row.issued_at,
    ownerClosedAt: row.owner_closed_at,
  },
  instance:
    row.instance_id === null
      ? null
      : {
          id: row.instance_id,
          state: row.instance_state as InstanceState,
          changedAt: row.changed_at ?? 0,
          terminatedAt: row.terminated_at,
          gaveUpAt: row.gave_up_at,
          boundAttemptId: row.bound_attempt_id,
        },
  attempts: [],
  lease:
    row.lease_id === null
      ? null
      : {
          id: row.lease_id,
          state: row.lease_state as LeaseState,
          retained: row.lease_state === 'released' && row.release_deletes === 0,
          // Else it is written on the box, where a person can change it.
          keep: row.fleet === null ? null : keepOfLease({ keep: row.lease_keep ?? 0, labels: row.lease_labels ?? '{}' }),
        },
  removals: [],
})

/**
 * @param readAt ms, the database's time before the statement
 * @returns by ref; a ref that nobody here issued is not in it
 */
export const evidenceOf = async (session: Session, refs: readonly string[], readAt: number): Promise<Map<string, RefEvidence>> => {
  const found = new Map<string, Growing>()
  if (refs.length === 0) return found
  const { rows } = await session.db.executeQuery<Joined>(CompiledQuery.raw(texts[session.dialect], [JSON.stringify(refs)]))
  for (const row of rows) {
    const evidence = found.get(row.ref) ?? begin(row, readAt)
    found.set(row.ref, evidence)
    // One row per attempt and removal: an attempt with two removals comes twice.
    if (
      row.attempt_id !== null &&
      evidence.attempts.at(-1)?.id !== row.attempt_id &&
      !evidence.attempts.some((one) => one.id === row.attempt_id)
    )
      evidence.attempts.push(attemptOf(row, row.attempt_id))
    if (row.removal_id !== null) evidence.removals.push(removalOf(row, row.removal_id))
  }
  return found
}

interface Bound {
  ref: string
  state: InstanceState
  instance_id: string
  attempt_id: string
  token: string
  scope: string
  location: string
  kind: string | null
  native_id: string | null
  immutable_id: string | null
}

const boundText = (refs: string, project: string, attemptKey: string): string => `select i.ref, i.state, i.id as instance_id,
  a.id as attempt_id, a.token, a.scope, a.location, a.kind, a.native_id, a.immutable_id
  from ${refs}
  cross join instances i
  cross join attempts a
  where i.ref = v.value and i.project = ${project} and i.state in ('provisioning', 'idle', 'busy') and a.ref = i.ref and ${attemptKey} = i.attempt_id`

const boundTexts = {
  // A cross join keeps its order in SQLite, and the plus keeps it to the index that covers the look: it would else read whole tables for each page.
  sqlite: boundText('json_each(?) as v', '?', '+a.id'),
  postgresql: boundText('json_array_elements_text($1::json) as v(value)', '$2', 'a.id'),
}

/**
 * The same for what active instances of one project are bound to, and only as much as `isPlainlyTracked` and `showsBound` ask for: the cheap first look at each page of
 * a large listing. Times are 0, when it was read too. Whether a release retained the box is not in it: that one is held rather than tracked, and left alone all the same. What is not in it is
 * not thereby untracked: `evidenceOf` tells.
 */
export const boundEvidenceOf = async (session: Session, refs: readonly string[], project: string): Promise<Map<string, RefEvidence>> => {
  if (refs.length === 0) return new Map()
  const { rows } = await session.db.executeQuery<Bound>(CompiledQuery.raw(boundTexts[session.dialect], [JSON.stringify(refs), project]))
  return new Map(
    rows.map((row): [string, RefEvidence] => [
      row.ref,
      {
        ref: row.ref,
        readAt: 0,
        ledger: { project, ownerId: row.instance_id, ownerName: '', issuedAt: 0, ownerClosedAt: null },
        instance: {
          id: row.instance_id,
          state: row.state,
          changedAt: 0,
          terminatedAt: null,
          gaveUpAt: null,
          boundAttemptId: row.attempt_id,
        },
        attempts: [
          {
            id: row.attempt_id,
            number: 0,
            token: row.token,
            scope: row.scope,
            location: row.location,
            outcome: 'bound',
            openedAt: 0,
            deadlineAt: 0,
            endedAt: null,
            kind: row.kind,
            nativeId: row.native_id,
            immutableId: row.immutable_id,
            // Asked for nowhere of what is plainly tracked.
            macKey: null,
          },
        ],
        lease: null,
        removals: [],
      },
    ]),
  )
}
