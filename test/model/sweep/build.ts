/** Words for the tables: one owner with one bound attempt, the resource that it made, and a listing that is complete; each test says what differs. */
import type { AttemptEvidence, InstanceEvidence, RefEvidence, SeenResource, SweepClock, SweepPolicy } from '../../../src/model/evidence.ts'
import { formGroups, type Group } from '../../../src/model/group.ts'
import type { Own } from '../../../src/model/own.ts'
import { cellKey, sealInventory, type CellState, type Expectation, type Inventory } from '../../../src/model/inventory.ts'
import { judge } from '../../../src/model/verdict.ts'
import type { Verdict } from '../../../src/model/verdict-case.ts'

/** When the listing begins. */
export const T = Date.UTC(2026, 5, 1, 12)
export const margin = 5000
export const hour = 3_600_000
export const ref = 'rabcdefghijk'
export const ours = 'inst0001'
export const scope = 'simulated:one'
export const location = 'sim-a'
export const token = 'token-1'

/** One that never started elsewhere, with a provider that has no room for keyed tags: its keys prove only what a test says. */
export const own: Own = {
  former: [],
  heldSince: 0,
  epoch: 7,
  adoptedAt: null,
  macSince: null,
  judgeMac: ({ mac }) => (mac === null ? { kind: 'none' } : { kind: 'wrong' }),
}

export const policy: SweepPolicy = {
  installation: ours,
  project: 'default',
  provider: 'simulated',
  scope,
  ownerKind: 'machine',
  kinds: ['machine', 'disk', 'nic', 'ip'],
  marginMs: margin,
  attemptMs: 60_000,
  holds: [],
  own,
}
export const clock: SweepClock = { listingStartedAt: T, now: T + 1000 }

export interface Seen extends Partial<Omit<SeenResource, 'resource' | 'tags'>> {
  resource?: Partial<SeenResource['resource']>
  tags?: Partial<SeenResource['tags']>
}
export const machine = (patch: Seen = {}): SeenResource => ({
  fixedAttemptToken: token,
  providerState: 'running',
  existence: 'exists',
  name: 'box-1',
  createdAt: T - hour,
  labels: { leasehold: 'true', keep: 'false' },
  attachedTo: [],
  reportOnly: null,
  ...patch,
  resource: { scope, location, kind: 'machine', nativeId: 'i-1', immutableId: 'uid-1', ...patch.resource },
  tags: { ref, installation: ours, attempt: token, mac: null, ...patch.tags },
})
export const internal = (kind: string, patch: Seen = {}): SeenResource =>
  machine({
    fixedAttemptToken: null,
    attachedTo: ['i-1'],
    ...patch,
    resource: { kind, nativeId: `${kind}-1`, immutableId: `uid-${kind}-1`, ...patch.resource },
  })

export const attempt = (patch: Partial<AttemptEvidence> = {}): AttemptEvidence => ({
  id: 'at_1',
  number: 1,
  token,
  scope,
  location,
  outcome: 'bound',
  openedAt: T - hour - 30_000,
  deadlineAt: T - hour + 30_000,
  endedAt: null,
  kind: 'machine',
  nativeId: 'i-1',
  immutableId: 'uid-1',
  macKey: null,
  ...patch,
})
/** An attempt whose resource never reached us. */
export const unbound = (patch: Partial<AttemptEvidence> = {}): AttemptEvidence =>
  attempt({ outcome: 'abandoned', kind: null, nativeId: null, immutableId: null, endedAt: T - hour, ...patch })

export const instance = (patch: Partial<InstanceEvidence> = {}): InstanceEvidence => ({
  id: 'in_1',
  state: 'busy',
  changedAt: T - hour,
  terminatedAt: null,
  gaveUpAt: null,
  boundAttemptId: 'at_1',
  ...patch,
})
export const ended = (patch: Partial<InstanceEvidence> = {}): InstanceEvidence =>
  instance({ state: 'terminated', terminatedAt: T - hour, ...patch })

export const evidence = (patch: Partial<RefEvidence> = {}): RefEvidence => ({
  ref,
  readAt: T + 500,
  ledger: { project: 'default', ownerId: 'in_1', ownerName: 'box-1', issuedAt: T - 2 * hour, ownerClosedAt: null },
  instance: instance(),
  attempts: [attempt()],
  lease: null,
  removals: [],
  ...patch,
})
export const ledger = (patch: Partial<NonNullable<RefEvidence['ledger']>> = {}): NonNullable<RefEvidence['ledger']> => ({
  ...(evidence().ledger as NonNullable<RefEvidence['ledger']>),
  ...patch,
})
/** Its owner's row is gone. */
export const ownerGone = (patch: Partial<RefEvidence> = {}): RefEvidence =>
  evidence({ instance: null, ledger: ledger({ ownerClosedAt: T - hour }), ...patch })

export const plausible: Expectation = { expected: 0, seen: 0, explained: 0, hadTags: 0, unreadable: 0, letPassBy: null }
export const complete: CellState = { kind: 'complete' }
export const partial: CellState = { kind: 'partial', why: 'page 2 failed' }
export const denied: CellState = { kind: 'denied', permission: 'machines.list' }

/** A listing of two locations; `states` says which cells differ from complete. */
export const inventory = (
  states: Record<string, CellState> = {},
  more: { at?: number; expectation?: Partial<Expectation> } = {},
): Inventory => {
  const locations = [location, 'sim-b']
  return sealInventory({
    startedAt: more.at ?? T,
    endedAt: (more.at ?? T) + 400,
    locations,
    kinds: policy.kinds,
    coverage: locations.flatMap((place) =>
      policy.kinds.map((kind) => ({ location: place, kind, state: states[`${place}/${kind}`] ?? complete, pages: 1 })),
    ),
    resources: new Map([[cellKey(location, 'machine'), 1]]),
    expectation: { ...plausible, ...more.expectation },
  })
}

export const groupOf = (...resources: SeenResource[]): Group => {
  const groups = formGroups(resources, policy.ownerKind)
  if (groups.length !== 1) throw new Error(`these make ${groups.length} groups`)
  return groups[0] as Group
}

export interface Situation {
  listed?: SeenResource[]
  known?: RefEvidence | null
  cells?: Record<string, CellState>
  policy?: Partial<SweepPolicy>
  clock?: Partial<SweepClock>
}
export const verdictOn = (situation: Situation): Verdict =>
  judge(
    groupOf(...(situation.listed ?? [machine()])),
    situation.known === undefined ? evidence() : situation.known,
    inventory(situation.cells),
    { ...clock, ...situation.clock },
    { ...policy, ...situation.policy },
  )
