/** Which replicas there are and what is done to them when: all of it follows from the seed, so that a failing one can be played again. */
import { chanceOf, type Chance } from '../simulation/engine/random.ts'

/** A replica's lock stands for 30 s (decisions, Defaults): who stands still for longer has lost what it held. */
export const lockMs = 30_000

export const faultKinds = ['kill', 'stand-still', 'half-open', 'restart-database', 'upgrade'] as const

/** `atMs` counts from the start of the load. */
export type Fault =
  /** `kill -9`, once it serves, and so long after that once more, in the middle of its start; null: only once. Its supervisor starts it again. */
  | { kind: 'kill'; atMs: number; replica: number; againMs: number | null }
  /** SIGSTOP, and SIGCONT after so long. */
  | { kind: 'stand-still'; atMs: number; replica: number; forMs: number }
  /** Its connections to the database stand and carry nothing; after so long they are reset. */
  | { kind: 'half-open'; atMs: number; replica: number; forMs: number }
  | { kind: 'restart-database'; atMs: number; how: 'fast' | 'immediate' }
  /** The replica of the version before is killed, and started as one of this version. */
  | { kind: 'upgrade'; atMs: number; replica: number }

export interface ReplicaPlan {
  version: 'this' | 'before'
  /** Its wall clock minus the true time. */
  clockSkewSeconds: number
}

export interface Plan {
  seed: number
  /** How long there is load and faults. */
  loadMs: number
  replicas: ReplicaPlan[]
  /** By time. */
  faults: Fault[]
  /** Real boxes, and a simulated account. */
  backends: ('boxes' | 'cloud')[]
  /** Whether sweeps take back what they find, every few seconds, in the middle of all this. */
  sweeps: 'report' | 'delete'
}

const byTime = (faults: readonly Fault[]): Fault[] => faults.toSorted((a, b) => a.atMs - b.atMs)

const between = ({ next }: Chance, from: number, to: number): number => Math.round(from + next() * (to - from))

const kills = (chance: Chance, replica: number, from: number, to: number): Fault[] => {
  const found: Fault[] = []
  for (let at = from + between(chance, 2_000, 12_000); at < to - 2_000; at += between(chance, 5_000, 18_000))
    found.push({ kind: 'kill', atMs: at, replica, againMs: chance.chance(25) ? between(chance, 350, 1_500) : null })
  return found
}

/** One replica stands still for longer than its locks, one is cut off from the database, one only dies, and that one is upgraded as well. */
export const planOf = (seed: number, loadMs = 60_000): Plan => {
  const chance = chanceOf(seed)
  const order = [0, 1, 2].map((replica) => ({ replica, rank: chance.next() })).toSorted((a, b) => a.rank - b.rank)
  const [still = 0, cut = 1, mortal = 2] = order.map((one) => one.replica)
  const skewed = chance.of([still, cut])
  const clockSkewSeconds = chance.chance(50) ? 300 : -300
  const replicas = [0, 1, 2].map((replica): ReplicaPlan => ({
    version: replica === mortal ? 'before' : 'this',
    clockSkewSeconds: replica === skewed ? clockSkewSeconds : 0,
  }))
  const stillAt = between(chance, 3_000, Math.max(4_000, loadMs - 45_000))
  const stillForMs = lockMs + between(chance, 3_000, 8_000)
  const cutAt = between(chance, 4_000, loadMs / 2)
  const cutForMs = between(chance, 8_000, Math.min(35_000, loadMs - cutAt))
  const upgradeAt = between(chance, loadMs * 0.4, loadMs * 0.8)
  const restarts = [between(chance, 5_000, loadMs * 0.45), between(chance, loadMs * 0.55, loadMs - 3_000)]
  const first = chance.of(['fast', 'immediate'] as const)
  const faults: Fault[] = [
    ...kills(chance, still, 0, stillAt),
    { kind: 'stand-still', atMs: stillAt, replica: still, forMs: stillForMs },
    ...kills(chance, still, stillAt + stillForMs, loadMs),
    ...kills(chance, cut, 0, cutAt),
    { kind: 'half-open', atMs: cutAt, replica: cut, forMs: cutForMs },
    ...kills(chance, cut, cutAt + cutForMs, loadMs),
    ...kills(chance, mortal, 0, upgradeAt),
    { kind: 'upgrade', atMs: upgradeAt, replica: mortal },
    ...kills(chance, mortal, upgradeAt, loadMs),
    ...restarts.map((atMs, i): Fault => ({
      kind: 'restart-database',
      atMs,
      how: i === 0 ? first : first === 'fast' ? 'immediate' : 'fast',
    })),
  ]
  return {
    seed,
    loadMs,
    replicas,
    faults: byTime(faults),
    backends: ['boxes', 'cloud'],
    sweeps: chance.chance(50) ? 'delete' : 'report',
  }
}

/** Nothing but `kill -9`, so often, on replicas of this version (case M11). */
export const crashesOf = (seed: number, crashes: number, everyMs: number): Plan => {
  const chance = chanceOf(seed)
  const faults = Array.from({ length: crashes }, (_, i): Fault => {
    const atMs = Math.round((i + chance.next()) * everyMs)
    return { kind: 'kill', atMs, replica: chance.pick(3), againMs: null }
  })
  const replicas = [0, 1, 2].map((): ReplicaPlan => ({ version: 'this', clockSkewSeconds: 0 }))
  return { seed, loadMs: crashes * everyMs, replicas, faults: byTime(faults), backends: ['cloud'], sweeps: 'report' }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

/** For people: one line each. */
export const describeFault = (fault: Fault): string => {
  const at = seconds(fault.atMs)
  switch (fault.kind) {
    case 'kill':
      return `${at}: replica ${fault.replica} is killed${fault.againMs === null ? '' : `, and again ${fault.againMs} ms later`}`
    case 'stand-still':
      return `${at}: replica ${fault.replica} stands still for ${seconds(fault.forMs)}`
    case 'half-open':
      return `${at}: replica ${fault.replica} hears nothing from the database for ${seconds(fault.forMs)}, then its connections are reset`
    case 'restart-database':
      return `${at}: the database is restarted (${fault.how})`
    case 'upgrade':
      return `${at}: replica ${fault.replica} is killed and started as one of this version`
  }
}

export const describePlan = (plan: Plan): string =>
  [
    `seed ${plan.seed}, ${seconds(plan.loadMs)} of load, sweeps ${plan.sweeps}`,
    ...plan.replicas.map(
      (one, i) =>
        `replica ${i}: ${one.version === 'before' ? 'of the version before' : 'of this version'}${one.clockSkewSeconds === 0 ? '' : `, its clock ${one.clockSkewSeconds} s off`}`,
    ),
    ...plan.faults.map(describeFault),
  ].join('\n')
