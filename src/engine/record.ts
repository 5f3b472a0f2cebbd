/** Builders of events and findings: written in the transaction of the state that they report. */
import { uuidv7Hex } from '../lib/ids.ts'
import { eventCodes, eventText, type EventCode, type EventPayload, type FindingCode } from '../model/codes.ts'
import { resourceKey } from '../model/removal.ts'
import { systemActor } from '../model/removal-evidence.ts'
import { appendEvents, type NewEvent } from '../store/events.ts'
import { markReported, resolveFindings, sight, type SweepColumns, type Whose } from '../store/findings.ts'
import type { FleetRow } from '../store/fleets.ts'
import type { InstanceRow } from '../store/instances.ts'
import type { LeaseRow } from '../store/leases.ts'
import type { Tx } from '../store/store.ts'

export interface Target {
  type: string
  id: string
  name: string
}

export { systemActor }

export const leaseTarget = (lease: Pick<LeaseRow, 'id' | 'slug'>): Target => ({ type: 'lease', id: lease.id, name: lease.slug })
export const instanceTarget = (instance: Pick<InstanceRow, 'id' | 'name'>): Target => ({
  type: 'instance',
  id: instance.id,
  name: instance.name,
})

/** By the name that people and holds use, and by the provider's own. */
export const resourceTargets = (provider: string, resources: readonly { location: string; nativeId: string }[]): Target[] => [
  ...new Map(
    resources.map(({ location, nativeId }) => {
      const id = resourceKey(provider, location, nativeId)
      return [id, { type: 'resource', id, name: nativeId }]
    }),
  ).values(),
]
export const fleetTarget = (fleet: Pick<FleetRow, 'id' | 'name'>): Target => ({ type: 'fleet', id: fleet.id, name: fleet.name })

/** @param now the transaction's time */
export const event = <C extends EventCode>(
  tx: Pick<Tx, 'now'>,
  code: C,
  payload: EventPayload<C>,
  about: { project: string | null; targets: Target[]; actor?: string },
): NewEvent => ({
  id: `ev_${uuidv7Hex(tx.now)}`,
  code,
  level: eventCodes[code].level,
  project: about.project,
  actor: about.actor ?? systemActor,
  message: eventText(code, payload),
  payload: payload as Record<string, unknown>,
  targets: about.targets,
})

export interface FindingAbout {
  code: FindingCode
  project: string | null
  scope: string | null
  target: Target
  message: string
  evidence: Record<string, unknown>
  /** What makes it the same as before; default: the evidence. */
  fingerprint?: string
  /** Further targets of its events: the owner, from the ledger. */
  alsoTargets?: Target[]
  sweep?: SweepColumns
}

/** Sights a finding: an event when it appears or changes, none while it only stands (orphans U6). */
export const reportFinding = async (tx: Tx, finding: FindingAbout): Promise<void> => {
  const sighting = await sight(
    tx,
    {
      code: finding.code,
      project: finding.project,
      scope: finding.scope as never,
      target_type: finding.target.type,
      target_id: finding.target.id,
      target_name: finding.target.name,
      message: finding.message,
      evidence: finding.evidence,
      fingerprint: finding.fingerprint ?? JSON.stringify(finding.evidence),
      ...(finding.sweep ? { sweep: finding.sweep } : {}),
    },
    () => `fd_${uuidv7Hex(tx.now)}`,
  )
  if (sighting.kind === 'again') return
  await markReported(tx, sighting.row.id)
  const targets = [{ type: 'finding', id: sighting.row.id, name: finding.code }, finding.target, ...(finding.alsoTargets ?? [])]
  const code = sighting.kind === 'appeared' ? 'finding.opened' : 'finding.changed'
  await appendEvents(tx, [event(tx, code, { code: finding.code, message: finding.message }, { project: finding.project, targets })])
}

export const resolveAbout = async (
  tx: Tx,
  targetType: string,
  targetIds: readonly string[],
  code: FindingCode | null = null,
  whose: Whose = {},
): Promise<void> => {
  const resolved = await resolveFindings(tx, code, targetType, targetIds, whose)
  await appendEvents(
    tx,
    resolved.map((row) =>
      event(
        tx,
        'finding.resolved',
        { code: row.code },
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

/** Something carries our ref and is not what an attempt made: a finding, and nothing else. */
export const reportContradictions = async (
  tx: Tx,
  instance: Pick<InstanceRow, 'project' | 'scope' | 'provider' | 'id' | 'ref'>,
  contradictions: readonly { nativeId: string; location: string; why: string }[],
): Promise<void> => {
  for (const one of contradictions) {
    const key = resourceKey(instance.provider, one.location, one.nativeId)
    await reportFinding(tx, {
      code: 'contradiction',
      project: instance.project,
      scope: instance.scope,
      target: { type: 'resource', id: key, name: key },
      message: one.why,
      evidence: { ref: instance.ref, instance: instance.id, why: one.why },
    })
  }
}
