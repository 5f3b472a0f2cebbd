/** The rows of one ref as a tree of facts, each with its source and time. */
import { briefDuration } from '../../lib/duration.ts'
import type { ExplanationNode } from '../../model/explain.ts'
import { hardEnd } from '../../model/clocks.ts'
import { isLive } from '../../model/lease.ts'
import type { AttemptRow } from '../../store/attempts.ts'
import type { AuditRecord } from '../../store/audit.ts'
import type { FindingRow } from '../../store/findings.ts'
import type { FreezeRow, HoldRow } from '../../store/holds.ts'
import type { LeaseRow } from '../../store/leases.ts'
import type { RemovalRow } from '../../store/removals.ts'
import type { Owner } from './owner.ts'
import { node } from './told.ts'

export const endOfLife = (lease: LeaseRow): number => hardEnd({ createdAt: lease.created_at, ttlSeconds: lease.ttl_seconds })

export const leaseNode = (lease: LeaseRow): ExplanationNode => {
  const live = isLive(lease.state)
  return node('lease', lease.updated_at, `lease ${lease.id} (${lease.slug}) of ${lease.owner} is ${lease.state}`, [
    node('lease', lease.created_at, 'it was created'),
    node('lease', lease.last_touched_at, `it was last touched; its idle time is ${briefDuration(lease.idle_seconds * 1000)}`),
    live ? node('lease', lease.expires_at, 'it ends, unless a heartbeat moves that') : null,
    live ? node('lease', endOfLife(lease), `its maximum lifetime of ${briefDuration(lease.ttl_seconds * 1000)} ends`) : null,
    lease.ended_at === null ? null : node('lease', lease.ended_at, `it ended as ${lease.state}`),
    lease.retained_at === null || lease.release_deletes !== 0 ? null : node('lease', lease.retained_at, 'its release kept the box'),
    lease.failure_code === null ? null : node('lease', lease.ended_at, `its failure: ${lease.failure_code}: ${lease.failure_error ?? ''}`),
    lease.may_exist === 1 ? node('lease', lease.updated_at, 'something of it may exist: the outcome of its create is uncertain') : null,
  ])
}

const identityText = (attempt: AttemptRow): string =>
  `${attempt.kind ?? 'resource'} ${attempt.native_id} (${attempt.immutable_id ?? 'no immutable id'}) in ${attempt.location} of ${attempt.scope}`

/** A look proves what was there when it was taken: what only lagged shows later. */
export const absentText = (attempt: Pick<AttemptRow, 'called_at' | 'native_id'>): string => {
  if (attempt.called_at === null) return 'the provider was never asked for anything'
  if (attempt.native_id !== null) return 'what it recorded was not there any more when it was last looked for'
  return 'nothing of it was there when it was last looked for; what only lagged shows later, and is then judged by itself'
}

const outcomeTexts: Record<Exclude<AttemptRow['outcome'], 'absent'>, string> = {
  open: 'is open',
  bound: 'is bound',
  abandoned: 'was given up without proof that it made nothing',
}

export const attemptNode = (attempt: AttemptRow, bound: boolean): ExplanationNode =>
  node(
    'attempt',
    attempt.ended_at ?? attempt.opened_at,
    `attempt ${attempt.number} (${attempt.id}) ${attempt.outcome === 'absent' ? `is over: ${absentText(attempt)}` : outcomeTexts[attempt.outcome]}${bound ? ', and its instance is bound to it' : ''}`,
    [
      node('attempt', attempt.opened_at, 'it was opened'),
      attempt.called_at === null ? null : node('attempt', attempt.called_at, 'the provider was called'),
      attempt.native_id === null ? null : node('attempt', attempt.ended_at ?? attempt.called_at, `it recorded ${identityText(attempt)}`),
      attempt.error === null ? null : node('attempt', attempt.ended_at ?? attempt.called_at, `its error: ${attempt.error}`),
      attempt.outcome === 'open' ? node('attempt', attempt.deadline_at, 'its deadline') : null,
      attempt.absent_since === null
        ? null
        : node('attempt', attempt.absent_since, `${attempt.absent_count} looks in a row found nothing, the first of them`),
      attempt.ended_at === null ? null : node('attempt', attempt.ended_at, 'it ended so'),
    ],
  )

interface AuditBody {
  kind?: string
  identity?: { nativeId?: string }
  absent?: { nativeId?: string }
  proof?: string
  why?: string
  error?: string
  by?: string
}

const auditNode = (record: AuditRecord): ExplanationNode => {
  const body = JSON.parse(record.body) as AuditBody
  if (record.kind === 'proof')
    return node('audit', record.at, `${body.absent?.nativeId ?? 'it'} was proved absent: ${body.proof ?? 'no proof recorded'}`)
  const detail = body.why ?? body.error ?? body.by
  const fact =
    record.kind === 'intent'
      ? `the removal of ${body.identity?.nativeId ?? 'it'} was about to be asked for`
      : `the provider answered ${body.kind ?? 'something'}${detail === undefined ? '' : `: ${detail}`}`
  return node('audit', record.at, fact)
}

const lastChange = (removal: RemovalRow): number =>
  removal.gone_at ?? Math.max(removal.opened_at, removal.started_at ?? 0, removal.accepted_at ?? 0, removal.failed_at ?? 0)

export const removalNode = (removal: RemovalRow, audit: readonly AuditRecord[]): ExplanationNode =>
  node('removal', lastChange(removal), `removal ${removal.id} (${removal.cause}) is ${removal.state}`, [
    node('removal', removal.opened_at, 'it was ordered'),
    ...audit.filter((record) => record.removal_id === removal.id).map(auditNode),
    removal.accepted_at === null ? null : node('removal', removal.accepted_at, 'the provider took it on'),
    removal.error === null
      ? null
      : node(
          'removal',
          removal.failed_at,
          `${removal.failures === 0 ? 'its last word' : `it failed ${removal.failures} times in a row, at last`}: ${removal.error}`,
        ),
    removal.retry_at === null ? null : node('removal', removal.retry_at, 'the next try'),
    removal.state === 'gave-up' ? node('removal', removal.failed_at, 'it was given up: nothing tries it any more') : null,
    removal.closed_at === null
      ? null
      : node('removal', removal.closed_at, `${removal.closed_by ?? 'somebody'} closed it: ${removal.closed_reason ?? ''}`),
    removal.held_by === null ? null : node('removal', removal.due_at, `${removal.held_by} stops it; looked at again`),
    removal.gone_at === null ? null : node('removal', removal.gone_at, 'its absence was proved'),
  ])

export const holdNode = (hold: HoldRow): ExplanationNode =>
  node('hold', hold.created_at, `${hold.created_by} holds ${hold.target_type} ${hold.target_id} (${hold.id}): ${hold.reason}`, [
    hold.until_at === null ? null : node('hold', hold.until_at, 'the hold ends'),
  ])

export const freezeNode = (freeze: FreezeRow): ExplanationNode =>
  node(
    'hold',
    freeze.created_at,
    `${freeze.created_by} stopped every removal${freeze.scope === '*' ? '' : ` in ${freeze.scope}`}: ${freeze.reason}`,
  )

export const findingNode = (finding: FindingRow): ExplanationNode =>
  node('finding', finding.last_seen_at, `finding ${finding.id} (${finding.code}) on ${finding.target_id}: ${finding.message}`)

/** What the ledger, the instance, its attempts, its lease, its removals and its holders say. */
export const ownerNodes = (owner: Owner): ExplanationNode[] => {
  const { ledger, instance } = owner
  const nodes = [
    node(
      'ledger',
      ledger.issued_at,
      `ref ${owner.ref} was issued to ${ledger.owner_name} (${ledger.owner_id}) of project ${ledger.project}`,
      [ledger.owner_closed_at === null ? null : node('ledger', ledger.owner_closed_at, 'its owner was closed')],
    ),
    instance === null
      ? node('instance', owner.readAt, `the row of instance ${ledger.owner_id} is gone`)
      : node('instance', instance.changed_at, `instance ${instance.id} is ${instance.state}`, [
          instance.terminated_at === null
            ? null
            : node('instance', instance.terminated_at, 'it was terminated: nothing of it was there any more when it was last looked for'),
          instance.gave_up_at === null ? null : node('instance', instance.gave_up_at, 'taking it back was given up'),
        ]),
    owner.lease === null ? null : leaseNode(owner.lease),
    ...owner.attempts.map((attempt) => attemptNode(attempt, instance?.attempt_id === attempt.id)),
    ...owner.events.map((event) => node('event', event.at, `${event.code}: ${event.message}`)),
    ...owner.removals.map((removal) => removalNode(removal, owner.audit)),
    ...owner.findings.map(findingNode),
    ...owner.holds.map(holdNode),
    ...owner.freezes.map(freezeNode),
  ]
  return nodes.filter((one) => one !== null)
}
