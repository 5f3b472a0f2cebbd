/** What a sweep leaves standing: each orphan and contradiction as one durable finding, with its quarantine (orphans U6, leases R58, R59). */
import { sha256 } from '../../lib/sha256.ts'
import type { FindingCode } from '../../model/codes.ts'
import { fingerprintText, advance, type Quarantine } from '../../model/quarantine.ts'
import { completeCell, countsFor, type Inventory } from '../../model/inventory.ts'
import { reportDueAt } from '../../model/sweep.ts'
import { reasonOf } from '../../model/verdict-reasons.ts'
import type { Verdict } from '../../model/verdict-case.ts'
import { resourceKey } from '../../model/removal.ts'
import type { AttemptId, Ref, ScopeId } from '../../model/ids.ts'
import type { Contradiction } from '../../providers/contract.ts'
import type { FindingRow } from '../../store/findings.ts'
import { markReported, unswept } from '../../store/findings.ts'
import { appendEvents } from '../../store/events.ts'
import type { Session, Tx } from '../../store/store.ts'
import { event, reportFinding, resolveAbout, type Target } from '../record.ts'
import type { Judged } from './judge-all.ts'
import type { SweepWork } from './load.ts'
import { membersOf, shownMember, unshown } from './shown.ts'

const codeOf = (verdict: Verdict): FindingCode | null => {
  if (!reasonOf(verdict.reason).finding) return null
  switch (verdict.kind) {
    case 'orphan':
      return 'orphan'
    case 'foreign':
      return 'malformed-ref'
    case 'inFlight':
      return 'stuck'
    case 'protected':
      return verdict.reason === 'protected.removal-closed' ? 'left-behind' : 'protected'
    case 'contradiction':
    case 'held':
    case 'missing':
    case 'settling':
    case 'tracked':
    case 'unseen':
      return 'contradiction'
  }
}

/** A person ends by hand what another one left: who did, why, and what it is, are said at once. */
const messageOf = (verdict: Verdict): string => {
  const { text } = reasonOf(verdict.reason)
  if (verdict.reason !== 'protected.removal-closed') return text
  return `${text} ${verdict.facts
    .slice(1)
    .map((one) => one.fact)
    .join('; ')}`
}

export const quarantineOf = (row: FindingRow | undefined): Quarantine | null =>
  row === undefined || row.standing_since === null || row.last_complete_at === null
    ? null
    : { fingerprint: row.fingerprint, firstSeenAt: row.standing_since, lastSeenAt: row.last_complete_at, timesSeen: row.complete_sightings }

/** The owner, from the ledger: beside its earlier events also when its row is gone (orphans R84). */
const ownerTarget = (judged: Judged): Target[] =>
  judged.evidence?.ledger ? [{ type: 'instance', id: judged.evidence.ledger.ownerId, name: judged.evidence.ledger.ownerName }] : []

export interface Noted {
  judged: Judged
  quarantine: Quarantine | null
  /** What it was fingerprinted as before differs: it was dropped from whatever waited for it. */
  changed: boolean
}

export interface SweepNote {
  sweepId: string
  work: SweepWork
  inventory: Inventory
  scope: string
}

/** By a reason other than orphan it is another finding: the same resource judged anew. */
export const fingerprintOf = (work: SweepWork, judged: Judged, code: FindingCode): string =>
  sha256(fingerprintText(work.backend.provider, judged.group) + (code === 'orphan' ? '' : judged.verdict.reason))

/** How an inventory moves the quarantine of an orphan. A dry run asks the same, and writes nothing. */
export const advanceOrphan = (work: SweepWork, inventory: Inventory, judged: Judged, before: FindingRow | undefined): Noted => {
  const moved = advance(quarantineOf(before), {
    kind: 'orphan',
    fingerprint: fingerprintOf(work, judged, 'orphan'),
    at: inventory.startedAt,
    complete: countsFor(inventory, judged.group.location, work.provider.ownerKind),
  })
  return { judged, quarantine: moved.kind === 'ended' ? null : moved.quarantine, changed: moved.kind === 'changed' }
}

/** Could this inventory have shown what was told of? Each kind of it must be complete there; of what the provider itself told, every kind. */
const couldShow = ({ work, inventory }: SweepNote, row: FindingRow): boolean => {
  const members = membersOf(row)
  const location = members[0]?.location ?? ''
  const kinds = members.every((one) => one.kind !== undefined) ? members.map((one) => one.kind ?? '') : work.provider.kinds
  return countsFor(inventory, location, work.provider.ownerKind) && kinds.every((kind) => completeCell(inventory, location, kind) !== null)
}

const noteOne = async (tx: Tx, note: SweepNote, judged: Judged, code: FindingCode, before: FindingRow | undefined): Promise<Noted> => {
  const { work, inventory } = note
  const { verdict, group, evidence } = judged
  const noted = code === 'orphan' ? advanceOrphan(work, inventory, judged, before) : { judged, quarantine: null, changed: false }
  const { quarantine } = noted
  const listed = group.members.map(shownMember)
  // What this inventory could not show again stays told, as it was.
  const blind = before !== undefined && !couldShow(note, before)
  const members = blind ? [...listed, ...unshown(inventory, before, listed)] : listed
  await reportFinding(tx, {
    code,
    project: work.backend.project,
    scope: note.scope,
    target: { type: 'resource', id: judged.target, name: group.members[0]?.name ?? judged.target },
    alsoTargets: ownerTarget(judged),
    message: messageOf(verdict),
    evidence: {
      verdict: { kind: verdict.kind, reason: verdict.reason, facts: verdict.facts, until: verdict.until },
      judgedAt: tx.now,
      members,
      token: group.token,
    },
    // An incomplete inventory neither counts nor resets: the fingerprint that stands stays with its quarantine.
    fingerprint: quarantine?.fingerprint ?? (blind ? before.fingerprint : fingerprintOf(work, judged, code)),
    sweep: {
      backend: work.backend.name,
      ref: (group.ref ?? null) as Ref | null,
      attempt_id: ((verdict.kind === 'orphan'
        ? verdict.proofs[0]?.attemptId
        : evidence?.attempts.find((one) => one.token === group.token)?.id) ?? null) as AttemptId | null,
      standing_since: quarantine?.firstSeenAt ?? null,
      complete_sightings: quarantine?.timesSeen ?? 0,
      last_complete_at: quarantine?.lastSeenAt ?? null,
      sweep_id: note.sweepId,
    },
  })
  return noted
}

/**
 * Whatever stands is told again when its time has come, whatever it is about: what opens the gate for a report must be reported, or the gate stays open.
 * A change or an appearance was told already (orphans R40, R68).
 */
export const remindStanding = async (tx: Tx, work: SweepWork): Promise<void> => {
  const open = await tx.db
    .selectFrom('findings')
    .selectAll()
    .where('project', '=', work.backend.project)
    .where('backend', '=', work.backend.name)
    .where('state', '=', 'open')
    .where('reported_at', '<', tx.now)
    .execute()
  const due = open.filter(
    (row) => reportDueAt({ firstSeenAt: row.first_seen_at, reportedAt: row.reported_at }, work.settings.reportEveryMs.value) <= tx.now,
  )
  for (const row of due) await markReported(tx, row.id)
  await appendEvents(
    tx,
    due.map((row) =>
      event(
        tx,
        'finding.standing',
        { code: row.code, message: row.message, timesSeen: row.times_seen },
        {
          project: row.project,
          targets: [
            { type: 'finding', id: row.id, name: row.code },
            { type: row.target_type, id: row.target_id, name: row.target_name },
          ],
        },
      ),
    ),
  )
}

/**
 * What earlier sweeps of this project left standing about resources of this account, through whichever of its backends: two of one account see the same
 * resource, and its quarantine is one (orphans R105).
 */
export const openOf = (tx: Session, work: SweepWork, scope: string): Promise<FindingRow[]> =>
  tx.db
    .selectFrom('findings')
    .selectAll()
    .where('project', '=', work.backend.project)
    .where('backend', 'is not', null)
    .where('scope', '=', scope as ScopeId)
    .where('state', '=', 'open')
    .where('target_type', '=', 'resource')
    .execute()

/** What the provider itself found at odds with a ref of ours, such as a process that copied one: told, never touched. */
const noteContradiction = async (
  tx: Tx,
  note: SweepNote,
  target: string,
  { nativeId, location, why, ref }: Contradiction,
): Promise<void> => {
  await reportFinding(tx, {
    code: 'contradiction',
    project: note.work.backend.project,
    scope: note.scope,
    target: { type: 'resource', id: target, name: target },
    message: why,
    evidence: { why, members: [{ nativeId, location }] },
    fingerprint: sha256(why),
    sweep: { ...unswept, backend: note.work.backend.name, ref: (ref ?? null) as Ref | null, sweep_id: note.sweepId },
  })
}

/** Writes the findings of one sweep; the caller has checked the fence. Nothing is resolved on the word of an incomplete inventory (I5). */
export const noteFindings = async (
  tx: Tx,
  note: SweepNote,
  judged: readonly Judged[],
  contradictions: readonly Contradiction[],
): Promise<Noted[]> => {
  const { work } = note
  const before = await openOf(tx, work, note.scope)
  const known = new Map(before.map((row) => [`${row.code} ${row.target_id}`, row]))
  const noted: Noted[] = []
  const standing = new Set<string>()
  // What can't be judged just now is neither over nor something else: what was told of it stands.
  const undecided = new Set(
    judged.filter(({ verdict }) => ['inFlight', 'settling', 'unseen'].includes(verdict.kind)).map((one) => one.target),
  )
  for (const one of judged) {
    const code = codeOf(one.verdict)
    if (code === null) continue
    const key = `${code} ${one.target}`
    standing.add(key)
    const row = known.get(key)
    noted.push(await noteOne(tx, note, one, code, row))
  }
  for (const one of contradictions) {
    const target = resourceKey(work.backend.provider, one.location, one.nativeId)
    const key = `contradiction ${target}`
    if (standing.has(key)) continue
    standing.add(key)
    await noteContradiction(tx, note, target, one)
  }
  const over = before.filter(
    (row) => !standing.has(`${row.code} ${row.target_id}`) && !undecided.has(row.target_id) && couldShow(note, row),
  )
  for (const [code, rows] of Map.groupBy(over, (row) => row.code))
    await resolveAbout(
      tx,
      'resource',
      rows.map((row) => row.target_id),
      code as FindingCode,
      { project: work.backend.project, scope: note.scope },
    )
  return noted
}
