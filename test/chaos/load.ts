/** What holders do meanwhile: they create with request keys, beat, look, release, cancel, and walk away. */
import { setTimeout as sleep } from 'node:timers/promises'
import { hex } from '../../src/lib/ids.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import type { Chance } from '../simulation/engine/random.ts'
import { processesWith } from '../support/boxes.ts'
import type { Answer } from '../support/coordinator.ts'
import type { Caller } from './client.ts'
import type { Told } from './history.ts'

export interface Load {
  caller: Caller
  chance: Chance
  /** No new lease. */
  done: () => boolean
  told: Told[]
  unexpected: string[]
  /** What leases are made on: `process` has real boxes, the other one is a simulated account. */
  backends: readonly string[]
  /** How long a holder thinks between two words, ms at most. */
  pauseMs: number
}

interface LeaseBody {
  lease?: LeaseView
  error?: string
}

const live = (state: string): boolean => state === 'provisioning' || state === 'active'

/** A create's refusals that say how its lease ended, and a beat's. */
const ended = new Set(['lease_ended', 'lease_state_changed', 'create_failed', 'create_canceled', 'lease_expired'])

const note = (told: Told, lease: LeaseView): void => {
  if (!told.ids.includes(lease.id)) told.ids.push(lease.id)
  if (live(lease.state)) {
    if (told.over) told.revived = `${lease.state} after it was answered as over`
    if (lease.state === 'active') told.active = true
    if (told.aliveUntil === null || lease.expiresAt > told.aliveUntil) told.aliveUntil = lease.expiresAt
  } else told.over = true
}

/** Only the box itself can say that it lives: looked for by its tag, unless its time is as good as over. */
const lookForBox = (told: Told, lease: LeaseView): void => {
  if (lease.provider !== 'process' || lease.state !== 'active' || Date.parse(lease.expiresAt) - Date.now() < 2_000) return
  if (processesWith('LEASEHOLD_REF', lease.ref).length > 0) return
  told.boxMissing = `no process carries ${lease.ref}, ${lease.cloudID}`
}

const surprise = (load: Load, what: string, told: Told, answer: Answer<LeaseBody>): void => {
  load.unexpected.push(`${what} of ${told.lease} was answered ${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`)
}

/** @returns null: the run is over; false: the lease has ended */
const beat = async (load: Load, told: Told): Promise<LeaseView | false | null> => {
  const answer = await load.caller.call<LeaseBody>('POST', `/v1/leases/${told.lease}/heartbeat`, {})
  if (answer === null) return null
  if (answer.status === 200 && answer.body.lease) {
    note(told, answer.body.lease)
    return answer.body.lease
  }
  if (answer.status !== 409 && answer.status !== 410) surprise(load, 'a heartbeat', told, answer)
  return false
}

const release = async (load: Load, told: Told): Promise<void> => {
  const answer = await load.caller.call<LeaseBody>('POST', `/v1/leases/${told.lease}/release`, { delete: true })
  if (answer === null) return
  if (answer.status !== 200 || !answer.body.lease) return surprise(load, 'a release', told, answer)
  note(told, answer.body.lease)
  if (answer.body.lease.state === 'released') told.released = true
}

const cancel = async (load: Load, told: Told, key: string): Promise<void> => {
  const answer = await load.caller.call<LeaseBody>('POST', `/v1/leases/${told.lease}/cancel-create`, { createAttemptID: key })
  if (answer === null) return
  if (answer.status !== 200) return surprise(load, 'a cancel', told, answer)
  if (answer.body.lease && answer.body.lease.state === 'released') told.cancelled = true
}

/** Answered as active, or as over. */
const settled = async (load: Load, told: Told): Promise<LeaseView | null> => {
  for (;;) {
    const answer = await load.caller.call<LeaseBody>('GET', `/v1/leases/${told.lease}`)
    if (answer === null) return null
    if (answer.status !== 200 || !answer.body.lease) {
      surprise(load, 'a look', told, answer)
      return null
    }
    note(told, answer.body.lease)
    if (answer.body.lease.state !== 'provisioning') return answer.body.lease
    if (load.done()) return null
    await sleep(100)
  }
}

const oneLease = async (load: Load): Promise<void> => {
  const { chance, caller } = load
  const told: Told = {
    lease: `lh_${hex(6)}`,
    created: false,
    active: false,
    aliveUntil: null,
    released: false,
    cancelled: false,
    ids: [],
    over: false,
    revived: null,
    boxMissing: null,
  }
  load.told.push(told)
  const key = `cat_${hex(16)}`
  const backend = chance.of(load.backends)
  const body = {
    leaseID: told.lease,
    createAttemptID: key,
    backend,
    // A simulated machine ends itself at the very end of its lifetime, and then it is a person who says whether that was it.
    ttlSeconds: backend === 'local' && chance.chance(30) ? 8 + chance.pick(24) : 600,
    idleTimeoutSeconds: 6 + chance.pick(18),
  }
  const create = caller.call<LeaseBody>('POST', '/v1/leases', body)
  if (chance.chance(12)) {
    // While it is being made: whichever comes first, the cancel counts.
    await sleep(chance.pick(300))
    await cancel(load, told, key)
    await create
    return
  }
  const made = await create
  if (made === null) return
  if (made.body.lease) note(told, made.body.lease)
  if (![200, 201, 202].includes(made.status)) {
    if (!ended.has(made.body.error ?? '')) surprise(load, 'a create', told, made)
    return
  }
  told.created = true
  let lease = made.status === 202 ? await settled(load, told) : (made.body.lease ?? null)
  if (lease?.state !== 'active') return
  lookForBox(told, lease)
  for (let beats = chance.pick(5); beats > 0 && !load.done(); beats--) {
    await sleep(chance.pick(load.pauseMs))
    const answer = await beat(load, told)
    if (!answer) return
    lease = answer
    lookForBox(told, lease)
  }
  // The others walk away: their clocks end them.
  if (chance.chance(60)) await release(load, told)
}

/** One holder after the other, until it is done. */
export const holders = async (load: Load): Promise<void> => {
  while (!load.done()) await oneLease(load)
}
