/**
 * A process that removes or wipes, step by step, and can be killed or stalled at any of its steps. A step is a transaction, or a call to the provider. Killed *at* a step,
 * it never learns that the step has happened, and nothing that it asks for afterwards happens. Stalled before a step, its request is on its way; after it, the
 * answer is.
 */
import type { Engine } from '../../../src/engine/engine.ts'
import { lockMs, type Held } from '../../../src/engine/pipeline.ts'
import { provisionPipeline } from '../../../src/engine/provision.ts'
import { removePipeline } from '../../../src/engine/remove.ts'
import type { Provider, RemoveOutcome } from '../../../src/providers/contract.ts'
import { lockDue } from '../../../src/store/due.ts'
import { removalsByIds, type RemovalRow } from '../../../src/store/removals.ts'
import type { Store } from '../../../src/store/store.ts'
import { createEngine } from '../../../src/engine/engine.ts'
import { silentLog } from '../../../src/engine/context.ts'
import { gate } from '../../support/scripted-provider.ts'
import type { Case } from '../cases/support.ts'

export type Fate = { kind: 'lives' } | { kind: 'killed' | 'stalled-before' | 'stalled-after'; at: number }

export interface Process {
  engine: Engine
  /** What its steps were, as far as it came. */
  steps: string[]
  /** It was killed, or stands at its step. */
  isStruck(): boolean
  /** Goes on where it was stalled. */
  resume(): void
  /** Calls of `remove` that reached the cloud, and what that answered. */
  removes: { id: string; afterResume: boolean; answer: RemoveOutcome }[]
  /** Works on whatever is due once. @returns false: nothing was due */
  pass(): Promise<boolean>
  /** A pass that nobody waits for. */
  begun: Promise<unknown>[]
}

class Killed extends Error {}

const works = {
  removals: removePipeline,
  instances: provisionPipeline,
}

/** @param table the queue that it works on */
export const startProcess = async (one: Case, real: Provider, fate: Fate, table: keyof typeof works = 'removals'): Promise<Process> => {
  const resumed = gate()
  const struck = { dead: false, stands: false, resumed: false }
  const steps: string[] = []
  let counting = false
  const alive = (): void => {
    if (struck.dead) throw new Killed('this process is dead')
  }
  const stall = async (): Promise<void> => {
    struck.stands = true
    await resumed.promise
    struck.resumed = true
  }
  const step = async <T>(name: string, work: () => Promise<T>): Promise<T> => {
    alive()
    const mine = counting && fate.kind !== 'lives' && steps.length === fate.at
    if (counting) steps.push(name)
    if (mine && fate.kind === 'stalled-before') await stall()
    const result = await work()
    if (mine && fate.kind === 'killed') struck.dead = true
    alive()
    if (mine && fate.kind === 'stalled-after') await stall()
    return result
  }
  const store: Store = {
    dialect: one.store.dialect,
    description: one.store.description,
    close: async () => {},
    now: async () => {
      alive()
      return one.store.now()
    },
    read: async (body) => {
      alive()
      return one.store.read(body)
    },
    write: (body) => step('write', () => one.store.write(body)),
  }
  const removes: Process['removes'] = []
  const { wipe, rearm } = real as Required<Pick<Provider, 'wipe' | 'rearm'>>
  const methods: Pick<Provider, 'read' | 'remove'> & Pick<Required<Provider>, 'inspect' | 'wipe' | 'rearm'> = {
    wipe: {
      clear: (resource, config, context) => step('clear', () => wipe.clear(resource, config, context)),
      leftovers: (resource, config, context) => step('leftovers', () => wipe.leftovers(resource, config, context)),
    },
    rearm: (resource, seconds, config, context) => step('rearm', () => rearm(resource, seconds, config, context)),
    read: (resource, config, context) => step(`read ${resource.kind}`, () => real.read(resource, config, context)),
    remove: (resource, config, context) =>
      step(`remove ${resource.kind}`, async () => {
        const afterResume = struck.resumed
        const answer = await real.remove(resource, config, context)
        removes.push({ id: resource.nativeId, afterResume, answer })
        return answer
      }),
    inspect: (group, config, context) =>
      step('inspect', async () => (await real.inspect?.(group, config, context)) ?? { kind: 'incomplete', why: 'it knows no groups' }),
  }
  const provider = Object.defineProperties(Object.create(real) as Provider, Object.getOwnPropertyDescriptors(methods))
  const engine = await createEngine({ store, providers: [provider], log: silentLog, version: 'test', watchClocks: false })
  const pipeline = works[table](engine.context)
  const begun: Promise<unknown>[] = []
  return {
    engine,
    steps,
    removes,
    begun,
    isStruck: () => struck.dead || (struck.stands && !struck.resumed),
    resume: () => resumed.open(),
    async pass() {
      const locked = await one.store.write((tx) => lockDue(tx, table, engine.context.replicaId, 10, lockMs))
      counting = true
      // Never told that it lost its lock: the worst that a process that stood still can be. Its own clock went on all the while.
      const own = table === 'removals' ? {} : { standsUntil: { get: () => (struck.stands ? 0 : Number.POSITIVE_INFINITY) } }
      const held = locked.map((lock): Held => Object.defineProperties({ ...lock, signal: new AbortController().signal }, own))
      const work = Promise.all(held.map((lock) => pipeline.process(lock))).catch((error: unknown) => {
        if (!(error instanceof Killed)) throw error
      })
      begun.push(work)
      const stands = async (): Promise<void> => {
        while (!struck.dead && !struck.stands) await new Promise((resolve) => setImmediate(resolve))
      }
      await (fate.kind === 'lives' || struck.resumed ? work : Promise.race([work, stands()]))
      return locked.length > 0
    },
  }
}

/** Passes until it is over, stopped or struck; the clock goes on to whatever is due next. */
export const runToEnd = async (one: Case, process: Process, removalId: string): Promise<RemovalRow> => {
  for (let i = 0; i < 60; i++) {
    const [row] = await one.store.read((session) => removalsByIds(session, [removalId]))
    if (!row) throw new Error(`there is no removal ${removalId}`)
    if (process.isStruck() || row.due_at === null) return row
    const now = await one.store.now()
    if (row.due_at > now) await one.advance((row.due_at - now) / 1000)
    await process.pass()
  }
  throw new Error(`removal ${removalId} does not come to an end`)
}
