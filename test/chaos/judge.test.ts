import { describe, expect, it } from 'vitest'
import type { EventFact, History, LeaseFact, RemovalFact, Told } from './history.ts'
import { judge } from './judge.ts'

const t0 = Date.UTC(2026, 10, 30)
const iso = (ms: number): string => new Date(t0 + ms).toISOString()

/** Two leases: `lh_a` was beaten once and expired at its idle end, `lh_b` was released. */
const sound = (): History => {
  const lease = (id: string, over: Partial<LeaseFact>): LeaseFact => ({
    id,
    state: 'expired',
    createdAt: t0,
    lastTouchedAt: t0 + 1_000,
    ttlSeconds: 600,
    idleSeconds: 10,
    endedAt: t0 + 11_500,
    failureCode: null,
    instance: `in_${id}`,
    ...over,
  })
  const told = (id: string, over: Partial<Told>): Told => ({
    lease: id,
    created: true,
    active: true,
    aliveUntil: iso(11_000),
    released: false,
    cancelled: false,
    ids: [id],
    over: false,
    revived: null,
    boxMissing: null,
    ...over,
  })
  const removal = (id: string, over: Partial<RemovalFact>): RemovalFact => ({
    id: `rm_${id}`,
    attempt: `at_${id}`,
    instance: `in_${id}`,
    lease: id,
    state: 'gone',
    cause: 'expired',
    openedAt: t0 + 11_000,
    ...over,
  })
  const story = (id: string, end: string): [string, string][] =>
    ['lease.created', 'lease.active', 'removal.opened', end, 'removal.gone'].map((code) => [id, code])
  const events = [...story('lh_a', 'lease.expired'), ...story('lh_b', 'lease.released')].map(([id, code], i): EventFact => ({
    id: `ev_${i + 1}`,
    seq: i + 1,
    at: t0 + i,
    code,
    targets: [id, `in_${id}`],
  }))
  return {
    told: [told('lh_a', {}), told('lh_b', { released: true })],
    leases: [lease('lh_a', {}), lease('lh_b', { state: 'released', endedAt: t0 + 5_000 })],
    instances: ['lh_a', 'lh_b'].map((id) => ({ id: `in_${id}`, state: 'terminated', attempt: `at_${id}` })),
    attempts: ['lh_a', 'lh_b'].map((id) => ({ id: `at_${id}`, instance: `in_${id}`, outcome: 'bound' })),
    removals: [removal('lh_a', {}), removal('lh_b', { cause: 'released', openedAt: t0 + 5_000 })],
    events,
    followed: events.map(({ id, seq }) => ({ id, seq: seq as number })),
    left: [],
    audit: [],
    strangers: [],
    ends: [],
    unexpected: [],
  }
}

const first = <T>(all: readonly T[]): T => all[0] as T

/** What is done to a sound history, and what is said of it then. */
const doctored: Record<string, [(history: History) => void, RegExp]> = {
  'a lease that never ended': [(h) => (first(h.leases).state = 'active'), /lh_a has not ended: it is active/],
  'a lease that ended twice': [
    (h) => {
      h.events.push({ id: 'ev_11', seq: 11, at: t0 + 20, code: 'lease.released', targets: ['lh_a'] })
      h.followed.push({ id: 'ev_11', seq: 11 })
    },
    /lh_a ended 2 times/,
  ],
  'a lease whose row says something else than its event': [(h) => (first(h.leases).state = 'released'), /lh_a is released, and its event/],
  'a lease that became active twice': [(h) => ((h.events[2] as EventFact).code = 'lease.active'), /lh_a became active 2 times/],
  'an expiry before the idle end': [(h) => (first(h.removals).openedAt -= 1), /lh_a expired early/],
  'an expiry before an end that a holder was promised': [(h) => (first(h.told).aliveUntil = iso(12_000)), /lh_a expired at .* promised/],
  'a removal of what was still held': [(h) => (first(h.removals).cause = 'orphan.unheld'), /took back what lh_a held/],
  'a box that vanished under its lease': [(h) => (first(h.leases).failureCode = 'resource_missing'), /its box vanished/],
  'an active lease without its box': [(h) => (first(h.told).boxMissing = 'no process'), /active without its box/],
  'a lease that was answered and is forgotten': [(h) => void h.leases.shift(), /lh_a was answered, and is not in the database/],
  'a release that was answered and did not happen': [(h) => (first(h.told).released = true), /lh_a was answered as released/],
  'a lease that came back to life': [(h) => (first(h.told).revived = 'active'), /lh_a came back to life/],
  'a request key that made two leases': [(h) => void first(h.told).ids.push('lh_c'), /one request key made lh_a and lh_c/],
  'an event that is missing': [(h) => void h.events.splice(4, 1), /numbers do not go up one by one/],
  'an event that is there twice': [(h) => (first(h.events).id = 'ev_2'), /events that are there twice: ev_2/],
  'an event without a number': [(h) => ((h.events.at(-1) as EventFact).seq = null), /numbers do not go up one by one: none/],
  'a follower who missed one': [(h) => void h.followed.splice(3, 1), /a follower was told ev_5 as event 5/],
  'a follower who was told one twice': [(h) => void h.followed.splice(1, 0, { id: 'ev_1', seq: 1 }), /a follower was told ev_1 as event 1/],
  'a follower who was not told the last one': [(h) => void h.followed.pop(), /a follower was told 9 events of 10/],
  'a resource that is left': [(h) => void h.left.push('folder x-1'), /left behind: folder x-1/],
  'a create of nobody': [(h) => void h.strangers.push('token'), /made by no attempt on record/],
  'an instance that is not terminated': [(h) => (first(h.instances).state = 'busy'), /instance in_lh_a is busy/],
  'an attempt without an end': [(h) => (first(h.attempts).outcome = 'open'), /attempt at_lh_a is still open/],
  'an attempt that nothing took back': [(h) => void h.removals.shift(), /what attempt at_lh_a made is not proved gone/],
  'a removal that is not over': [(h) => (first(h.removals).state = 'verifying'), /removal rm_lh_a is verifying/],
  'a removal that was told gone twice': [(h) => ((h.events[3] as EventFact).code = 'removal.gone'), /tell removal.gone 2 times/],
  'an audit that does not hold': [(h) => void h.audit.push('a gap'), /the audit: a gap/],
  'a coordinator that ended by itself': [
    (h) => void h.ends.push({ replica: 'replica 0', status: 1, signal: null, served: true, log: 'TypeError' }),
    /replica 0 ended by itself \(1\): TypeError/,
  ],
  'an answer that no fault explains': [(h) => void h.unexpected.push('500'), /unexpected: 500/],
}

describe('the judge of the chaos suite', () => {
  it('finds nothing in a history in which everything holds', () => {
    expect(judge(sound())).toEqual([])
  })

  it('lets a coordinator end that could not reach the database at its start', () => {
    const history = sound()
    history.ends.push({ replica: 'replica 0', status: 1, signal: null, served: false, log: 'the database could not be opened' })
    expect(judge(history)).toEqual([])
  })

  it.each(Object.entries(doctored))('finds %s', (_, [doctor, says]) => {
    const history = sound()
    doctor(history)
    expect(judge(history)).toEqual(expect.arrayContaining([expect.stringMatching(says)]))
  })
})
