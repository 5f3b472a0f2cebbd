/**
 * Which database is the true one is a person's word: adopt goes on here, fork leaves what there is to the other one. Both are kept in the audit, and end every
 * stop (decisions 6).
 */
import { describePlace, type Place } from '../../model/place.ts'
import { LeaseholdError } from '../../model/errors.ts'
import type { InstallationView, StopView } from '../../model/wire-installation.ts'
import { appendEvents } from '../../store/events.ts'
import { lockInstallation, readInstallation, updateInstallation, type InstallationRow } from '../../store/installation.ts'
import { addKey, listKeys } from '../../store/keys.ts'
import { readMark } from '../../store/mark.ts'
import { readPlace } from '../../store/place.ts'
import { wakeHeldRemovals } from '../../store/removals.ts'
import { endStops, everywhere, listStops, type StopRow } from '../../store/stops.ts'
import type { Session } from '../../store/store.ts'
import { requireGlobalAdmin, requireOperator, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { adoptFleets } from '../adopt-fleets.ts'
import { forkWithin } from '../fork.ts'
import { freshKey } from '../keyring.ts'
import { event, resolveAbout } from '../record.ts'
import { iso, isoOrNull } from '../views.ts'
import { installationTarget } from '../whereabouts.ts'
import { auditOperator } from './operator-audit.ts'
import { scopesOfProject } from './scopes.ts'

const stopView = (row: StopRow): StopView => ({ scope: row.scope, code: row.code, why: row.why, since: iso(row.since_at) })

/** What concerns the asker: for one project `*` and the scopes of its own backends. */
export const visibleStops = async (session: Session, actor: Actor): Promise<StopView[]> => {
  const rows = await listStops(session)
  if (actor.project === null) return rows.map(stopView)
  const own = await scopesOfProject(session, actor.project)
  return rows.filter((row) => row.scope === everywhere || own.has(row.scope)).map(stopView)
}

const viewOf = async (session: Session, actor: Actor, place: Place): Promise<InstallationView> => {
  const row = (await readInstallation(session)) as InstallationRow
  return {
    installation: row.installation_id,
    epoch: row.epoch,
    createdAt: iso(row.created_at),
    adoptedAt: isoOrNull(row.adopted_at),
    former: JSON.parse(row.former) as string[],
    heldSince: isoOrNull(row.held_since === 0 ? null : row.held_since),
    place: row.place === null ? null : describePlace(JSON.parse(row.place) as Place),
    found: describePlace(place),
    stops: await visibleStops(session, actor),
    // Never their secrets.
    keys: (await listKeys(session)).map((key) => ({ id: key.id, createdAt: iso(key.created_at), retiredAt: isoOrNull(key.retired_at) })),
  }
}

/** @throws LeaseholdError forbidden */
export const readInstallationView = async (context: EngineContext, actor: Actor): Promise<InstallationView> => {
  requireOperator(actor)
  return context.store.read(async (session) => viewOf(session, actor, await readPlace(session)))
}

const reasonOf = (text: string): string => {
  const reason = text.trim()
  if (reason === '') throw new LeaseholdError('bad_request', 'reason: say why, for those who ask which database was the true one')
  return reason
}

const notStopped = (what: string): LeaseholdError =>
  new LeaseholdError('not_stopped', `no removal is stopped, so there is nothing to ${what}: this database is not known to be a copy`)

const unconfirmed = (): LeaseholdError =>
  new LeaseholdError(
    'bad_request',
    'original: two coordinators with one identity may both delete what the other one holds. Make sure that none runs on the other database any more, ' +
      'then say so: --original-is-stopped, or "original": "stopped"; if one is to go on there, fork this database instead',
  )

/**
 * This is the database that goes on: it lives here from now on, in an epoch newer than any that was seen.
 * @param input.original a person's word that no coordinator runs on the other database; nothing here could look
 * @throws LeaseholdError forbidden, bad_request, not_stopped
 */
export const adoptInstallation = async (
  context: EngineContext,
  actor: Actor,
  input: { reason: string; original?: 'stopped' },
): Promise<InstallationView> => {
  requireGlobalAdmin(actor)
  const reason = reasonOf(input.reason)
  const { place, beside } = await context.store.read(async (session) => ({
    place: await readPlace(session),
    beside: await readMark(session),
  }))
  await context.store.write(async (tx) => {
    const row = await lockInstallation(tx)
    const stops = await endStops(tx)
    if (stops.length === 0) throw notStopped('adopt')
    if (input.original !== 'stopped') throw unconfirmed()
    const epoch = Math.max(row.epoch, ...stops.map((stop) => stop.epoch ?? 0)) + 1
    // What stands beside the file was written by a newer state of it: from here on this one is the newest.
    const mark = Math.max(row.mark, beside?.mark ?? 0) + 1
    await updateInstallation(tx, { epoch, mark, place: JSON.stringify(place), adopted_at: tx.now })
    await resolveAbout(tx, 'installation', [row.installation_id], 'elsewhere')
    await resolveAbout(
      tx,
      'scope',
      stops.map((stop) => stop.scope),
      'rewound',
    )
    const targets = [installationTarget(row.installation_id)]
    await appendEvents(tx, [event(tx, 'installation.adopted', { epoch, reason }, { project: null, actor: actor.name, targets })])
    const fleets = await adoptFleets(tx, stops)
    const body = { action: 'installation-adopt', installation: row.installation_id, epoch, reason, stops: stops.map(stopView), fleets }
    await auditOperator(
      tx,
      actor,
      { project: null, scope: null },
      { ...body, from: row.place === null ? null : (JSON.parse(row.place) as Place), to: place },
    )
    await wakeHeldRemovals(tx)
  })
  context.signals.wake('remove')
  context.signals.wake('provision')
  return context.store.read((session) => viewOf(session, actor, place))
}

/**
 * The other database goes on: this one is a new installation, which holds nothing. This process has to begin anew, and makes nothing until then.
 * @param input.when `stopped`: only if removals are stopped, so that nobody abandons a healthy ledger by mistake
 * @throws LeaseholdError forbidden, bad_request, not_stopped
 */
export const forkInstallation = async (
  context: EngineContext,
  actor: Actor,
  input: { reason: string; when: 'stopped' | 'always' },
): Promise<InstallationView> => {
  requireGlobalAdmin(actor)
  const reason = reasonOf(input.reason)
  const place = await context.store.read((session) => readPlace(session))
  await context.store.write(async (tx) => {
    const row = await lockInstallation(tx)
    const stops = await listStops(tx)
    if (stops.length === 0 && input.when === 'stopped') throw notStopped('fork from')
    const { from, to } = await forkWithin(tx, row, place, actor.name)
    const targets = [installationTarget(to), installationTarget(from)]
    await appendEvents(tx, [event(tx, 'installation.forked', { from, to, reason }, { project: null, actor: actor.name, targets })])
    const body = { action: 'installation-fork', from, to, reason, stops: stops.map(stopView) }
    await auditOperator(tx, actor, { project: null, scope: null }, body)
  })
  context.signals.forked()
  return context.store.read((session) => viewOf(session, actor, place))
}

/**
 * A new key for the keyed tag. What the older ones made is verified on, for ever.
 * @throws LeaseholdError forbidden, bad_request
 */
export const rotateKey = async (context: EngineContext, actor: Actor, input: { reason: string }): Promise<InstallationView> => {
  requireGlobalAdmin(actor)
  const reason = reasonOf(input.reason)
  const fresh = freshKey()
  await context.store.write(async (tx) => {
    const row = await lockInstallation(tx)
    await addKey(tx, fresh)
    const targets = [installationTarget(row.installation_id)]
    await appendEvents(tx, [
      event(tx, 'installation.key-rotated', { key: fresh.id, reason }, { project: null, actor: actor.name, targets }),
    ])
    await auditOperator(tx, actor, { project: null, scope: null }, { action: 'installation-rotate-key', key: fresh.id, reason })
  })
  return context.store.read(async (session) => viewOf(session, actor, await readPlace(session)))
}
