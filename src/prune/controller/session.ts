/**
 * A controller on one Swarm: registered there, recognised after a restart, and at work in one process at a time. Every tick asks the database's lock, then
 * the Swarm, and renews, waits, or says who has the id (prune R73, R74, 7.3; cases B3, prune 15).
 */
import { type Asking, type Observation, leaseStep, leaseTtlMs, mayDelete, observe } from '../../model/prune/controller-lease.ts'
import { type Registration, type SeenRegistration, type Standing, judgeRegistration, rivalText } from '../../model/prune/controller.ts'
import { recordName } from '../../model/prune/record-names.ts'
import type { AppSetSource, ControllerBody } from '../../model/prune/records.ts'
import type { Swarm } from '../../providers/swarm/index.ts'
import { type ControllerLeaseRow, lockControllerLease, recordBeat, unlockControllerLease } from '../../store/controllers.ts'
import type { Store } from '../../store/store.ts'
import { encode } from '../records/envelope.ts'
import { PoisonError } from '../records/poison.ts'
import { type LeaseState, readRegistration, registrationLabels } from '../records/registration.ts'
import type { Identity } from './identity.ts'

export interface ControllerOptions {
  store: Store
  swarm: Swarm
  clusterId: string
  identity: Identity
  appSet: AppSetSource
  /** Names this process in the database's lock. */
  replicaId: string
  /** Of this process alone, random. */
  nonce: string
  /** ms of a clock that only goes forward; never the store's, never the wall's (I4). */
  monotonic: () => number
  ttlMs?: number
  signal: AbortSignal
}

export interface ControllerSession {
  /** As the last tick found it. */
  standing(): Standing
  /** Registers, renews, observes; every 15 s while sweeping, every 60 s otherwise, and right before each batch of deletions. */
  tick(): Promise<Standing>
  /** Whether something may be written or deleted now: half of the lease's life is left. */
  stands(): boolean
  /** The app set that it runs is the one it is known by from now on: after a person saw what departs with the old one. */
  confirmAppSet(): void
  /** At a clean end. */
  close(): Promise<void>
}

/** What a Swarm says of the id. A name in another case is another controller's all the same: the Swarm has room for one of both. */
export const lookUp = async (
  swarm: Swarm,
  clusterId: string,
  controllerId: string,
  signal: AbortSignal,
): Promise<SeenRegistration | { kind: 'unknown'; why: string }> => {
  const found = await swarm.configs.inspect(recordName.controller(controllerId), { signal })
  if (found.kind === 'absent') return { kind: 'absent' }
  if (found.kind === 'unknown') return { kind: 'unknown', why: found.error }
  try {
    return { kind: 'read', registration: readRegistration(found.object, clusterId) }
  } catch (error) {
    if (error instanceof PoisonError)
      return { kind: 'unreadable', why: `the registration ${found.object.name} can't be read: ${error.message}` }
    throw error
  }
}

export const stateOf = ({ epoch, holder, beat, appSet, reclaims }: Registration): LeaseState => ({ epoch, holder, beat, appSet, reclaims })

const report = (code: Extract<Standing, { mode: 'report' }>['code'], why: string): Standing => ({ mode: 'report', code, why, rival: null })

export const createController = (options: ControllerOptions): ControllerSession => {
  const { store, swarm, clusterId, identity, nonce, monotonic, signal } = options
  const ttlMs = options.ttlMs ?? leaseTtlMs
  const key = { cluster_id: clusterId, controller_id: identity.controllerId }
  let standing: Standing = report('no-answer', 'the Swarm was not asked yet')
  let observed: Observation | null = null
  let renewedMs: number | null = null
  let locked: ControllerLeaseRow | null = null
  let confirmed = false

  const register = async (row: ControllerLeaseRow): Promise<boolean> => {
    if (!(await store.write((tx) => recordBeat(tx, row, nonce, Math.max(1, row.beat))))) return false
    const { signer, controllerId, instanceUid } = identity
    const createdAt = await store.now()
    const body: ControllerBody = { controllerId, instanceUid, publicKey: signer.publicKey, clusterId, appSet: options.appSet, createdAt }
    const labels = registrationLabels({ epoch: 1, holder: nonce, beat: 1, appSet: options.appSet, reclaims: [] })
    // Of any number at once exactly one is made (docker facts 3.5); who it was is read afterwards.
    await swarm.configs.create(
      { Name: recordName.controller(controllerId), Labels: labels, Data: encode('controller', body, signer).base64 },
      { signal },
    )
    return true
  }

  /** Takes or renews the lease as the version that was read. @returns null: it was not, and nothing of ours was written */
  const write = async (row: ControllerLeaseRow, from: Registration, epoch: number, appSetChanged: boolean): Promise<Standing | null> => {
    const beat = from.beat + 1
    // First here and then there: whatever is there was written down by the process that wrote it.
    if (!(await store.write((tx) => recordBeat(tx, row, nonce, beat)))) return null
    const appSet = appSetChanged && !confirmed ? from.appSet : options.appSet
    const sentMs = monotonic()
    const labels = registrationLabels({ ...stateOf(from), epoch, holder: nonce, beat, appSet })
    const updated = await swarm.configs.update(
      from.id,
      from.version,
      { Name: recordName.controller(identity.controllerId), Labels: labels },
      { signal },
    )
    if (updated.kind === 'uncertain') {
      const seen = await lookUp(swarm, clusterId, identity.controllerId, signal)
      if (seen.kind !== 'read' || seen.registration.holder !== nonce || seen.registration.beat !== beat) return null
    } else if (updated.kind !== 'updated') return null
    renewedMs = sentMs
    return { mode: 'act', epoch, appSetChanged: appSetChanged && !confirmed }
  }

  const withRow = async (row: ControllerLeaseRow): Promise<Standing> => {
    const mine = { publicKey: identity.signer.publicKey, appSet: options.appSet }
    let seen = await lookUp(swarm, clusterId, identity.controllerId, signal)
    if (seen.kind === 'absent') {
      const sentMs = monotonic()
      if (!(await register(row))) return report('standing-by', 'another replica of this installation took over')
      seen = await lookUp(swarm, clusterId, identity.controllerId, signal)
      if (seen.kind === 'read' && seen.registration.holder === nonce && seen.registration.beat === 1) renewedMs = sentMs
      else if (seen.kind === 'absent')
        return report('refused', `the Swarm keeps no registration of the controller ${identity.controllerId}`)
    }
    if (seen.kind === 'unknown') return report('no-answer', seen.why)
    const verdict = judgeRegistration(seen, mine)
    switch (verdict.kind) {
      case 'unregistered':
        return report('no-answer', 'the registration is not there any more')
      case 'unreadable':
        return report('unreadable-registration', verdict.why)
      case 'another':
        return { mode: 'report', code: 'another-controller', why: rivalText(verdict.rival), rival: verdict.rival }
      case 'given-away':
        return { mode: 'report', code: 'given-away', why: `${rivalText(verdict.rival)}: it was taken from this one`, rival: verdict.rival }
      case 'ours':
        return atWork(row, verdict.registration, verdict.appSetChanged)
    }
  }

  const atWork = async (row: ControllerLeaseRow, registration: Registration, appSetChanged: boolean): Promise<Standing> => {
    observed = observe(observed, registration, monotonic())
    const asking: Asking = { nonce, recorded: row.nonce === null ? null : { nonce: row.nonce, beat: row.beat } }
    const step = leaseStep(registration, asking, observed, monotonic(), ttlMs)
    if (step.kind === 'stand-by')
      return report(
        'standing-by',
        `another process with the same key is at work; it may be taken over in ${Math.ceil(step.leftMs / 1000)} s if it says nothing`,
      )
    return (
      (await write(row, registration, step.epoch, appSetChanged)) ?? report('standing-by', 'another process with the same key was faster')
    )
  }

  return {
    standing: () => standing,
    async tick() {
      const until = ttlMs / 2
      locked = await store.write((tx) => lockControllerLease(tx, key, options.replicaId, tx.now + until))
      standing = locked === null ? report('standing-by', 'another replica of this installation is at work') : await withRow(locked)
      if (standing.mode === 'report') renewedMs = null
      return standing
    },
    stands: () => standing.mode === 'act' && mayDelete(renewedMs, monotonic(), ttlMs),
    confirmAppSet: () => {
      confirmed = true
    },
    async close() {
      renewedMs = null
      standing = report('standing-by', 'it has ended')
      const row = locked
      if (row !== null) await store.write((tx) => unlockControllerLease(tx, row))
    },
  }
}
