/**
 * One ref, what its attempts truly made, what others made to look like it, and a listing that may fail in places. Everything listed carries the truth about
 * it, which no decision is shown: who made it, and for which attempt.
 */
import type {
  AttemptEvidence,
  InstanceEvidence,
  LeaseEvidence,
  RefEvidence,
  SeenResource,
  SweepPolicy,
} from '../../../src/model/evidence.ts'
import { identityKey } from '../../../src/model/group.ts'
import { sealInventory, type CellState, type Inventory } from '../../../src/model/inventory.ts'
import { resourceKey, type HoldFacts } from '../../../src/model/removal.ts'
import { location, margin, ours, plausible, policy as plain, ref, scope, T, hour } from '../../model/sweep/build.ts'
import type { Tape } from './tape.ts'

export interface Truth {
  /** `copy`: somebody copied a resource of ours, tags and all; `stranger`: somebody wrote our tags on a resource of theirs. */
  maker: 'ours' | 'copy' | 'stranger'
  attempt: number
  seen: SeenResource
  /** Its tags still say what we wrote. */
  intact: boolean
}

export interface World {
  listed: SeenResource[]
  /** All that exists, by identity, listed or not. */
  truth: Map<string, Truth>
  evidence: RefEvidence
  inventory: Inventory
  /** The same listing as somebody would have it who takes every failure for emptiness. */
  blindInventory: Inventory
  policy: SweepPolicy
}

const kinds = ['machine', 'disk', 'nic'] as const
const places = [location, 'sim-b'] as const
const keepLabels = [{}, { keep: 'false' }, { keep: 'true' }, { 'Leasehold.Keep': 'until friday' }, null] as const

const stateOf = (tape: Tape): CellState =>
  tape.chance(25)
    ? tape.chance(50)
      ? { kind: 'partial', why: 'a page failed' }
      : { kind: 'denied', permission: 'list' }
    : { kind: 'complete' }

/** The tag that the key makes of an attempt, as far as these worlds go: by its token alone. */
const macOf = (token: string): string => `mac of ${token}`
const judgeMac: SweepPolicy['own']['judgeMac'] = ({ mac, attempt }) => {
  if (mac === null) return { kind: 'none' }
  if (mac === 'by another key') return { kind: 'unknown-key', keyId: 'zzzzzz' }
  return attempt !== null && mac === macOf(attempt) ? { kind: 'valid', epoch: plain.own.epoch } : { kind: 'wrong' }
}

const madeBy = (attempt: AttemptEvidence, index: number, kind: string, tape: Tape): Truth => {
  const distorted = tape.chance(10)
  const written = attempt.macKey === null ? null : macOf(attempt.token)
  const mac = tape.chance(10) ? tape.of([null, 'by another key', 'forged']) : written
  const labels = tape.chance(25) ? tape.of(keepLabels) : {}
  const owner = kind === 'machine'
  const id = `${kind}-${index}`
  return {
    maker: 'ours',
    attempt: index,
    intact: !distorted && mac === written,
    seen: {
      resource: { scope: attempt.scope, location: attempt.location, kind, nativeId: id, immutableId: `uid-${id}` },
      tags: {
        ref,
        installation: distorted && tape.chance(50) ? tape.of([null, 'inst0002']) : ours,
        attempt: distorted ? tape.of([null, 'token-9']) : attempt.token,
        mac,
      },
      fixedAttemptToken: owner || tape.chance(50) ? attempt.token : null,
      providerState: 'running',
      existence: tape.chance(5) ? 'going' : 'exists',
      name: id,
      createdAt: attempt.openedAt + 1000,
      labels,
      attachedTo: owner || tape.chance(25) ? [] : [`machine-${index}`],
      reportOnly: null,
    },
  }
}

const copyOf = (original: Truth, tape: Tape): Truth => {
  const { resource, createdAt } = original.seen
  return {
    maker: tape.chance(50) ? 'stranger' : 'copy',
    attempt: original.attempt,
    intact: true,
    seen: {
      ...original.seen,
      resource: { ...resource, nativeId: `${resource.nativeId}-copy`, immutableId: `${resource.immutableId}-copy` },
      fixedAttemptToken: null,
      createdAt: (createdAt ?? 0) + 20 * 60_000,
      attachedTo: tape.chance(50) ? original.seen.attachedTo : [],
    },
  }
}

const attemptOf = (index: number, tape: Tape): AttemptEvidence => {
  const recorded = tape.chance(60)
  const openedAt = T - 3 * hour + index * 60_000
  const outcome = recorded ? 'bound' : tape.of(['abandoned', 'absent', 'open'] as const)
  return {
    id: `at_${index}`,
    number: index,
    token: `token-${index}`,
    scope: tape.chance(5) ? 'simulated:two' : scope,
    location: tape.chance(15) ? 'sim-b' : location,
    outcome,
    openedAt,
    deadlineAt: openedAt + 60_000,
    endedAt: outcome === 'abandoned' || outcome === 'absent' ? openedAt + 60_000 : null,
    kind: recorded ? 'machine' : null,
    nativeId: recorded ? `machine-${index}` : null,
    immutableId: recorded ? `uid-machine-${index}` : null,
    macKey: tape.chance(30) ? null : 'a1b2c3',
  }
}

const changedAt = (tape: Tape): number => (tape.chance(10) ? T - margin + tape.pick(2) * 2 * margin : T - hour)

const instanceOf = (attempts: readonly AttemptEvidence[], tape: Tape): InstanceEvidence | null => {
  const state = tape.of(['busy', 'terminated', 'idle', 'terminated', 'provisioning', 'terminating', 'pending', null] as const)
  if (state === null) return null
  const bound = attempts.findLast((attempt) => attempt.immutableId !== null)
  const at = changedAt(tape)
  return {
    id: 'in_1',
    state,
    changedAt: at,
    terminatedAt: state === 'terminated' ? at : null,
    gaveUpAt: state === 'terminating' && tape.chance(50) ? at : null,
    boundAttemptId: state !== 'pending' && bound ? bound.id : null,
  }
}

const leaseOf = (tape: Tape): LeaseEvidence | null => {
  const state = tape.of([null, 'expired', 'active', 'released', 'provisioning', 'failed'] as const)
  return state === null ? null : { id: 'lh_1', state, retained: state === 'released' && tape.chance(50) }
}

const holdOf = (tape: Tape, some: SeenResource | undefined): HoldFacts[] => {
  if (!tape.chance(15)) return []
  const target = tape.of([
    ['instance', 'in_1'],
    ['lease', 'lh_1'],
    ['project', 'default'],
    ['scope', scope],
    ['resource', some ? resourceKey(plain.provider, some.resource.location, some.resource.nativeId) : 'none'],
  ] as const)
  return [{ id: 'hd_1', targetType: target[0], targetId: target[1] }]
}

const seal = (states: ReadonlyMap<string, CellState> | null): Inventory =>
  sealInventory({
    startedAt: T,
    endedAt: T + 400,
    locations: places,
    kinds,
    coverage: places.flatMap((place) =>
      kinds.map((kind) => ({ location: place, kind, state: states?.get(`${place}/${kind}`) ?? { kind: 'complete' as const }, pages: 1 })),
    ),
    resources: new Map(),
    expectation: plausible,
  })

const blindInventory = seal(null)

export const tapeLength = 128

export const worldOf = (tape: Tape): World => {
  const attempts = Array.from({ length: 1 + tape.pick(3) }, (_, i) => attemptOf(i + 1, tape))
  const instance = instanceOf(attempts, tape)
  const lease = leaseOf(tape)
  const truths: Truth[] = []
  for (const [i, attempt] of attempts.entries()) {
    const made = kinds
      .filter((kind) => (kind === 'machine' ? !tape.chance(20) : tape.chance(50)))
      .map((kind) => madeBy(attempt, i + 1, kind, tape))
    truths.push(...made)
    for (const one of made) if (tape.chance(20)) truths.push(copyOf(one, tape))
  }
  const states = new Map(places.flatMap((place) => kinds.map((kind): [string, CellState] => [`${place}/${kind}`, stateOf(tape)])))
  const isListed = ({ seen }: Truth): boolean =>
    seen.resource.scope === scope && (states.get(`${seen.resource.location}/${seen.resource.kind}`)?.kind === 'complete' || tape.chance(30))
  const listed = truths.filter(isListed).map((one) => one.seen)
  const evidence: RefEvidence = {
    ref,
    readAt: T + 500,
    ledger: tape.chance(5)
      ? null
      : {
          project: tape.chance(10) ? 'other' : 'default',
          ownerId: 'in_1',
          ownerName: 'box-1',
          issuedAt: T - 4 * hour,
          ownerClosedAt: instance === null ? changedAt(tape) : null,
        },
    instance,
    attempts,
    lease,
    removals: [],
  }
  return {
    listed,
    truth: new Map(truths.map((one) => [identityKey(one.seen), one])),
    evidence,
    inventory: seal(states),
    blindInventory,
    policy: { ...plain, kinds, holds: holdOf(tape, listed[0]), own: { ...plain.own, judgeMac } },
  }
}
