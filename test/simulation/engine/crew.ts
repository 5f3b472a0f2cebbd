/** The engines of a world: started on one store, killed, stalled, and followed by others. */
import type { Log } from '../../../src/engine/context.ts'
import { createEngine, type Engine } from '../../../src/engine/engine.ts'
import { createHeartbeat } from '../../../src/engine/leases/index.ts'
import type { LimitPolicy } from '../../../src/model/limits.ts'
import type { SweepSettings } from '../../../src/model/sweep-settings.ts'
import type { Provider } from '../../../src/providers/contract.ts'
import type { Store } from '../../../src/store/store.ts'
import type { LyingCloud } from './cloud.ts'
import type { WorldDatabase } from './database.ts'
import { Life, MortalStore } from './life.ts'
import type { Chance } from './random.ts'
import type { Universe } from './universe.ts'
import type { Watch } from './watch.ts'

/** What a test breaks on purpose: on the way of every engine to its store or its provider, or the clock of its process. */
export interface Mutant {
  store?: (store: Store) => Store
  provider?: (provider: Provider) => Provider
  monotonic?: 'runs' | 'stands'
  /** What it bounds itself by, instead of what was set. */
  limits?: LimitPolicy
}

export interface Up {
  engine: Engine
  beat: ReturnType<typeof createHeartbeat>
}

interface Member {
  life: Life
  store: MortalStore
  /** Null while it starts. */
  up: Up | null
  buried: boolean
}

export interface Crew {
  /** Begins another one; it is up once its first transactions are through. */
  start(): Promise<void>
  living(): Life[]
  /** Asks one that answers; whether an answer comes is its fate. @param refused told when it is a refusal */
  ask(request: (up: Up) => Promise<unknown>, refused: () => void): void
  /** What becomes of the dead. @returns how many died since it was asked last */
  bury(): number
  /** All of them, at once. */
  end(): void
  stalls(): number
}

export interface Setting {
  database: WorldDatabase
  universe: Universe
  cloud: LyingCloud
  watch: Watch
  chance: Chance
  sweeps: (provider: string) => SweepSettings
  limits: LimitPolicy
  mutant: Mutant
  log: Log
}

export const makeCrew = ({ database, universe, cloud, watch, chance, sweeps, limits, mutant, log }: Setting): Crew => {
  const members: Member[] = []
  const living = (): Member[] => members.filter((one) => !one.life.dead)
  const begin = async (member: Member): Promise<void> => {
    const guarded = watch.guard(cloud.provider, member.life, () => member.store.who)
    const engine = await createEngine({
      store: member.store,
      providers: [mutant.provider?.(guarded) ?? guarded],
      log,
      version: 'test',
      watchClocks: false,
      sweepSettings: sweeps,
      limits: mutant.limits ?? limits,
    })
    member.store.who = engine.context.replicaId
    await engine.start()
    member.up = { engine, beat: createHeartbeat(engine.context) }
  }
  return {
    async start() {
      const life = new Life()
      const store = new MortalStore(mutant.store?.(database.store) ?? database.store, life, database.gate)
      const member: Member = { life, store, up: null, buried: false }
      members.push(member)
      begin(member).catch((error: unknown) => log.error({ error: String(error) }, 'an engine could not start'))
      await universe.drain()
    },
    living: () => living().map((one) => one.life),
    ask(request, refused) {
      const ready = living().flatMap(({ up, life }) => (up === null || life.stalled ? [] : [up]))
      const up = ready.length > 1 && chance.chance(50) ? ready[1] : ready[0]
      if (up) void request(up).catch(refused)
    },
    bury() {
      const fresh = members.filter((one) => one.life.dead && !one.buried)
      for (const one of fresh) {
        one.buried = true
        // Another process can see that it is gone, as its pid tells; or it was of another machine, and its locks have to end.
        if (chance.chance(60)) database.run("update replicas set pid_start = 'gone' where id = ?", one.store.who)
      }
      return fresh.length
    },
    end() {
      for (const one of members) one.life.kill()
    },
    stalls: () => members.reduce((sum, one) => sum + one.life.stalls, 0),
  }
}
