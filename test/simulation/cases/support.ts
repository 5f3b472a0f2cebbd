/**
 * A running engine on the simulated cloud, both on one clock that stands still until it is moved. What the cloud does is real; a case bends single answers
 * of it by faults of the cloud's own, or by hooks where it needs to do something at an exact moment.
 */
import { makeMac } from '../../../src/engine/keyring.ts'
import { readInstallation } from '../../../src/store/installation.ts'
import { listKeys } from '../../../src/store/keys.ts'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dryRunSweep, listSweeps, requestSweep, type SweepInput } from '../../../src/engine/admin/index.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { createLease, getLease, type CreateInput } from '../../../src/engine/leases/index.ts'
import { hex } from '../../../src/lib/ids.ts'
import type { SweepMode } from '../../../src/model/sweep-settings.ts'
import type { LeaseView, SweepView } from '../../../src/model/wire.ts'
import type { Provider } from '../../../src/providers/contract.ts'
import { openCloud, type Cloud, type Resource } from '../../../src/providers/simulated/cloud.ts'
import type { FaultSpec } from '../../../src/providers/simulated/faults.ts'
import { createSimulatedProvider } from '../../../src/providers/simulated/index.ts'
import type { Kind } from '../../../src/providers/simulated/words.ts'
import { readEvents } from '../../../src/store/events.ts'
import type { AttemptRow } from '../../../src/store/attempts.ts'
import type { FindingRow } from '../../../src/store/findings.ts'
import type { Store } from '../../../src/store/store.ts'
import { ann, makeEngine, root } from '../../support/engine.ts'
import { setClock } from '../../support/stores.ts'
import { sweepsAs } from '../../support/sweep-settings.ts'
import { until } from '../../support/until.ts'
import { instrument, type Call, type Hooks } from './instrumented.ts'

export const t0 = Date.UTC(2026, 5, 1, 12)
/** The margin of a local provider that shows everything at once (decisions, Defaults). */
export const marginMs = 5_000
export const graceSeconds = 900
export const long = { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 }
export const requestKey = (): string => `cat_${hex(16)}`

export interface Case {
  store: Store
  cloud: Cloud
  provider: Provider
  engine: Engine
  hooks: Hooks
  /** Operations that the engine asked the provider for, oldest first. */
  calls: Call[]
  settings: { mode: SweepMode; graceMs: number; reportEveryMs: number }
  count(op: Call['op'], id?: string): number
  /** Moves the clock of database and cloud, and lets the pipelines look. */
  advance(seconds: number): Promise<number>
  /** Moves the clock step by step until it holds. */
  advanceUntil(holds: () => boolean | Promise<boolean>, what: string, stepSeconds?: number): Promise<void>
  /** Asked for by a person, so many seconds later. */
  sweep(seconds?: number, input?: SweepInput): Promise<SweepView>
  /** As the schedule makes it, so many seconds later: it lists only if the gate has a reason to. @returns the newest certificate */
  scheduled(seconds?: number): Promise<SweepView | undefined>
  dryRun(): Promise<SweepView>
  lease(input?: CreateInput): Promise<LeaseView & { cloudID: string }>
  /** The row says that it ended, and its machine runs on: what a deregistered and never removed one looks like. */
  deregister(lease: LeaseView): Promise<void>
  /** A deregistered lease. */
  orphan(input?: CreateInput): Promise<LeaseView & { cloudID: string }>
  attemptOf(lease: LeaseView): Promise<AttemptRow>
  /** What the attempt of a lease would have made beside its machine. */
  launch(lease: LeaseView, kind: Kind, more?: { name?: string; token?: string | null; tags?: Record<string, string> }): Promise<Resource>
  fault(operation: FaultSpec['operation'], effect: FaultSpec['effect'], more?: Partial<FaultSpec>): void
  open(): Promise<FindingRow[]>
  /** `code resource`, of the open findings. */
  told(): Promise<string[]>
  events(code: string): Promise<Awaited<ReturnType<typeof readEvents>>>
  /** Ids of what runs in the cloud. */
  running(): string[]
  isRunning(id: string): boolean
  /** Waits until it has ended and its removal, if there is one, has recorded that. */
  gone(id: string): Promise<void>
  /** The backend's own configuration. */
  configure(config: Record<string, unknown>): Promise<void>
  /** Another coordinator on the same database and cloud; the one before is stopped without waiting for its calls. */
  restart(): Promise<Engine>
  /** No coordinator runs any more. */
  stop(): Promise<void>
  leaseView(id: string): Promise<LeaseView>
}

export interface Cases {
  open(store: Store, given?: { mode?: SweepMode; config?: Record<string, unknown>; start?: boolean; path?: string }): Promise<Case>
  /** After each test. */
  close(): Promise<void>
}

const none: Pick<FaultSpec, 'count' | 'lengthMs' | 'page' | 'location' | 'kind'> = {
  count: null,
  lengthMs: null,
  page: null,
  location: null,
  kind: null,
}

/** The row says that it ended, and what it had runs on. */
export const deregister = (store: Store, lease: Pick<LeaseView, 'id' | 'instanceID' | 'ref'>): Promise<void> =>
  store.write(async (tx) => {
    const id = lease.instanceID as never
    await tx.db
      .updateTable('instances')
      .set({ state: 'terminated', changed_at: tx.now, terminated_at: tx.now, due_at: null })
      .where('id', '=', id)
      .execute()
    await tx.db
      .updateTable('leases')
      .set({ state: 'failed', failure_code: 'resource_missing', ended_at: tx.now, due_at: null })
      .where('id', '=', lease.id as never)
      .execute()
    await tx.db.updateTable('attempts').set({ outcome: 'absent', ended_at: tx.now }).where('instance_id', '=', id).execute()
    await tx.db
      .updateTable('ledger')
      .set({ owner_closed_at: tx.now })
      .where('ref', '=', lease.ref as never)
      .execute()
  })

/** As the engine wrote it on what this attempt made; epochs don't matter here. */
export const keyedTag = (store: Store, attempt: AttemptRow): Promise<{ leasehold_mac?: string }> =>
  store.read(async (session) => {
    const key = (await listKeys(session)).find((one) => one.id === attempt.mac_key)
    const own = await readInstallation(session)
    if (!key || !own) return {}
    const { scope, ref, token } = attempt
    return { leasehold_mac: makeMac(key, { installation: own.installation_id, scope, ref, attempt: token, epoch: own.epoch }) }
  })

export const openCases = (): Cases => {
  const undo: (() => Promise<void> | void)[] = []

  const open: Cases['open'] = async (store, given = {}) => {
    const folder = mkdtempSync(join(tmpdir(), 'leasehold-case-'))
    undo.push(() => rmSync(folder, { recursive: true, force: true }))
    const path = given.path ?? join(folder, 'simulated.db')
    const clock = { now: t0 }
    await setClock(store, t0)
    const hooks: Hooks = {}
    const calls: Call[] = []
    // A call that hangs gives up at once: nothing here waits by the wall clock.
    const sleep = async (_ms: number, signal: AbortSignal): Promise<void> => signal.throwIfAborted()
    const provider = instrument(createSimulatedProvider({ dataFolder: folder, now: () => clock.now, sleep }), hooks, calls)
    const cloud = openCloud(path, () => clock.now)
    undo.push(() => cloud.close())
    const settings = { mode: given.mode ?? 'delete', graceMs: graceSeconds * 1000, reportEveryMs: 86_400_000 }
    const sweeps = sweepsAs(settings)
    const engines: Engine[] = []
    undo.push(async () => {
      await Promise.all(engines.map((engine) => engine.stop(0)))
    })
    const makeOne = async (): Promise<Engine> => {
      const engine = await makeEngine(store, provider, { sweeps })
      engines.push(engine)
      return engine
    }
    const wakeAll = (): void => {
      for (const engine of engines)
        for (const name of ['provision', 'expire', 'remove', 'sweep', 'fleet'] as const) engine.context.signals.wake(name)
    }
    /** Until the pipelines have done what was due, or hang in a call: a clock that runs ahead of them would prove nothing about times. */
    const settled = async (): Promise<void> => {
      const isBusy = async (): Promise<boolean> => {
        const now = await store.now()
        return store.read(async ({ db }) => {
          for (const table of ['instances', 'removals', 'leases'] as const) {
            const due = await db.selectFrom(table).select('lock_fence').where('due_at', '<=', now).limit(1).execute()
            const locked = await db.selectFrom(table).select('lock_fence').where('lock_owner', 'is not', null).limit(1).execute()
            if (due.length + locked.length > 0) return true
          }
          return false
        })
      }
      await until(async () => !(await isBusy()), 'the pipelines are done', 1_500).catch(() => {})
    }
    const configure = async (config: Record<string, unknown>): Promise<void> => {
      // As it is taken in by whoever adds a backend: the provider learns how slow it is.
      const parsed = provider.parseConfig({ path, group: 'machine', ...config })
      await store.write((tx) =>
        tx.db
          .updateTable('backends')
          .set({ config: JSON.stringify(parsed) })
          .where('name', '=', 'local')
          .where('project', '=', 'default')
          .execute(),
      )
    }
    const one: Case = {
      store,
      cloud,
      provider,
      engine: await makeOne(),
      hooks,
      calls,
      settings,
      configure,
      count: (op, id) => calls.filter((call) => call.op === op && (id === undefined || call.id === id)).length,
      async advance(seconds) {
        clock.now = (await store.now()) + seconds * 1000
        await setClock(store, clock.now)
        wakeAll()
        return clock.now
      },
      async advanceUntil(holds, what, stepSeconds = 30) {
        await until(
          async () => {
            if (await holds()) return true
            await one.advance(stepSeconds)
            await settled()
            return false
          },
          what,
          20_000,
        )
      },
      async sweep(seconds = 60, input = {}) {
        await one.advance(seconds)
        const [view] = await requestSweep(one.engine.context, root, { backend: 'local', ...input }, 20_000, new AbortController().signal)
        return view as SweepView
      },
      async scheduled(seconds = 1_800) {
        const row = () => store.read(({ db }) => db.selectFrom('cleanups').selectAll().executeTakeFirstOrThrow())
        const before = await until(async () => {
          const now = await row()
          return now.lock_owner === null ? now : undefined
        }, 'the cleanup is free')
        await one.advance(seconds)
        await store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: tx.now }).where('lock_owner', 'is', null).execute())
        wakeAll()
        await until(async () => {
          const now = await row()
          return now.lock_fence > before.lock_fence && now.lock_owner === null
        }, 'the schedule is processed')
        return (await listSweeps(one.engine.context, root, { limit: 1 }))[0]
      },
      async dryRun() {
        const [view] = await dryRunSweep(one.engine.context, root, { backend: 'local' }, new AbortController().signal)
        return view as SweepView
      },
      async lease(input = {}) {
        const { lease } = await createLease(one.engine.context, ann, { ...long, ...input })
        const active = await until(async () => {
          const view = await one.leaseView(lease.id)
          return view.state === 'provisioning' ? undefined : view
        }, 'the lease is settled')
        if (active.state !== 'active' || active.cloudID === null)
          throw new Error(`the lease is ${active.state}: ${active.failureError ?? ''}`)
        return { ...active, cloudID: active.cloudID }
      },
      deregister: (lease) => deregister(store, lease),
      async orphan(input) {
        const lease = await one.lease(input)
        cloud.rearm(lease.cloudID, 365 * 86_400_000)
        await one.deregister(lease)
        return lease
      },
      attemptOf: (lease) =>
        store.read(({ db }) =>
          db
            .selectFrom('attempts')
            .selectAll()
            .where('ref', '=', lease.ref as never)
            .orderBy('number', 'desc')
            .executeTakeFirstOrThrow(),
        ),
      async launch(lease, kind, more = {}) {
        const attempt = await one.attemptOf(lease)
        const tags = more.tags ?? {
          leasehold_ref: lease.ref,
          leasehold_installation: one.engine.context.installation.installation_id,
          leasehold_attempt: attempt.token,
          ...(await keyedTag(store, attempt)),
        }
        const token = more.token === undefined ? attempt.token : more.token
        const spec = { kind, location: attempt.location, name: more.name ?? `${lease.slug}-${kind}`, tags, token }
        return cloud.launch([spec]).resources[0] as Resource
      },
      fault: (operation, effect, more = {}) => void cloud.addFault({ operation, effect, ...none, ...more }),
      open: () => store.read(({ db }) => db.selectFrom('findings').selectAll().where('state', '=', 'open').orderBy('id').execute()),
      told: async () => (await one.open()).map((row) => `${row.code} ${row.target_id.split('/').at(-1)}`).toSorted(),
      events: async (code) =>
        (await readEvents(store, { project: null, after: 0, limit: 500, target: null })).filter(({ event }) => event.code === code),
      running: () =>
        cloud
          .all()
          .filter((resource) => !['terminated', 'deleted'].includes(resource.state))
          .map((resource) => resource.id),
      isRunning: (id) => one.running().includes(id),
      async gone(id) {
        const recorded = (): Promise<boolean> =>
          store.read(async ({ db }) => {
            const left = await db.selectFrom('removals').select('identity').where('state', '<>', 'gone').execute()
            return left.every((row) => row.identity?.includes(`"${id}"`) !== true)
          })
        await until(async () => !one.isRunning(id) && (await recorded()), `${id} is gone, and that is recorded`)
      },
      async stop() {
        const before = engines.splice(0)
        await Promise.all(before.map((engine) => engine.stop(0)))
      },
      async restart() {
        await one.stop()
        one.engine = await makeOne()
        // Which setting it up anew takes away.
        await store.write((tx) => tx.db.updateTable('backends').set({ is_default: 1 }).where('name', '=', 'local').execute())
        await one.engine.start()
        return one.engine
      },
      leaseView: (id) => getLease(one.engine.context, root, id),
    }
    await configure(given.config ?? {})
    if (given.start ?? true) await one.engine.start()
    return one
  }

  return {
    open,
    async close() {
      for (const step of undo.splice(0).toReversed()) await step()
    },
  }
}
