/** Why a fleet has the boxes that it has, and what became of a lease whose box went back to one. */
import { decideFleet, isReady, youngEnds } from '../../model/fleet.ts'
import { endedMembers, livingMembers, type FleetRow } from '../../store/fleets.ts'
import type { InstanceRow } from '../../store/instances.ts'
import type { LeaseRow } from '../../store/leases.ts'
import type { Session } from '../../store/store.ts'
import { readObstaclesOfBoxes, setAside } from '../fleet/aside.ts'
import { fleetFacts, memberFacts } from '../fleet/index.ts'
import { leaseNode } from './owner-tree.ts'
import { conclusionNode, node, type Told } from './told.ts'

const recentMs = 1_800_000

const memberNode = (row: InstanceRow, ttlSeconds: number, aside: string | undefined, now: number) => {
  const ready = aside === undefined && isReady({ state: row.state, deadAt: row.dead_at, checkedAt: row.checked_at }, ttlSeconds, now)
  const state = row.wiping_since === null ? row.state : 'being wiped'
  const whose = row.lease_id === null ? '' : `, of lease ${row.lease_id}`
  return node('instance', row.changed_at, `instance ${row.id} (${row.name}) is ${state}${ready ? ' and ready' : ''}${whose}`, [
    aside === undefined ? null : node('instance', row.changed_at, `it is set aside, neither given out nor counted: ${aside}`),
    row.dead_at === null ? null : node('instance', row.dead_at, 'it ends by itself, unless its clock is moved'),
    row.checked_at === null ? null : node('instance', row.checked_at, 'it was seen alive'),
  ])
}

const wordsOf = (row: FleetRow, missing: number): { verdict: string; text: string; change: string } => {
  if (row.deleted_at !== null)
    return {
      verdict: 'ended',
      text: 'It is deleted and drains: nothing more is made, and what nobody holds is taken back.',
      change: 'the end of what is left of it',
    }
  if (row.held_at !== null)
    return {
      verdict: 'held',
      text: `It makes no more boxes: ${row.held_why ?? 'no reason recorded'}.`,
      change: `a person who looks why they end: leasehold fleet scale ${row.name} --resume`,
    }
  if (row.paused_at !== null)
    return {
      verdict: 'held',
      text: 'A person paused it: nothing is made or replaced.',
      change: `leasehold fleet scale ${row.name} --resume`,
    }
  return {
    verdict: 'tracked',
    text: missing === 0 ? 'As many are ready, or on their way, as are to be.' : `${missing} are missing, and will be made.`,
    change: `leasehold fleet scale ${row.name} SIZE, or leases that take its boxes`,
  }
}

export const explainFleet = async (session: Session, row: FleetRow, now: number): Promise<Told> => {
  const members = await livingMembers(session, row)
  const ended = await endedMembers(session, row, now - recentMs)
  const aside = await setAside(session, members, await readObstaclesOfBoxes(session, now))
  const all = [...members, ...ended].map((member) => memberFacts(member, aside))
  const words = wordsOf(row, decideFleet(fleetFacts(row), all, now).create)
  const young = youngEnds(fleetFacts(row), all, now)
  return {
    type: 'fleet',
    project: row.project,
    subject: `fleet ${row.id}`,
    verdict: words.verdict,
    reason: null,
    heldBack: [...new Set(aside.values())].map((what) => ({ what, until: null })),
    change: words.change,
    tree: conclusionNode({ ...words, reason: null }, now, [
      node('instance', row.changed_at, `${row.size} are to be ready on backend ${row.backend}, each for ${row.ttl_seconds} s at least`),
      young.length === 0
        ? null
        : node(
            'instance',
            Math.max(...young.map((one) => one.changedAt)),
            `${young.length} ended young without having served, the last of them`,
          ),
      ...members.map((member) => memberNode(member, row.ttl_seconds, aside.get(member.id), now)),
    ]),
  }
}

/** Whose box it is now is not its former holder's business. */
export const explainReturned = (lease: LeaseRow): Told => {
  const text = `Its box went back to fleet ${lease.fleet ?? ''}, wiped, and nothing of the lease is left in it.`
  return {
    type: 'lease',
    project: lease.project,
    subject: `lease ${lease.id} (${lease.slug})`,
    verdict: 'gone',
    reason: null,
    heldBack: [],
    change: 'nothing: an ended lease stays what it is',
    tree: conclusionNode({ verdict: 'gone', reason: null, text }, lease.returned_at ?? lease.updated_at, [leaseNode(lease)]),
  }
}
