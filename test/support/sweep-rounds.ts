/** Sweeps as their schedule makes them, on a clock that stands still until it is moved: for suites about the gate and what it leaves on its rows. */
import { enrolMissing } from '../../src/engine/sweep/enrol.ts'
import { releaseLease } from '../../src/engine/leases/index.ts'
import type { Certificate } from '../../src/engine/sweep/certificate.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { Log } from '../../src/engine/context.ts'
import type { SweepMode } from '../../src/model/sweep-settings.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import { insertBackend } from '../../src/store/backends.ts'
import type { Store } from '../../src/store/store.ts'
import { ann, leaseOn, leaseWhen, makeEngine } from './engine.ts'
import { sweepsAs } from './sweep-settings.ts'
import { scriptedProvider, type Scripted } from './scripted-provider.ts'
import { advance, setClock } from './stores.ts'
import { until } from './until.ts'

export const t0 = Date.UTC(2026, 5, 1, 12)
export const intervalMs = 900_000
/** That of a provider that is not of this machine. */
export const marginMs = 600_000
export const long = { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 }

export interface Rounds {
  store: Store
  provider: Scripted
  engine: Engine
  settings: { mode: SweepMode; graceMs: number }
  /** Moves the clock, makes one backend's row due, and waits until it was processed. @returns its newest certificate */
  round(afterMs?: number, backend?: string): Promise<Certificate | null>
  cleanup(backend?: string): Promise<CleanupRow>
  certificates(): Promise<Certificate[]>
  open(): Promise<FindingRow[]>
  /** A lease whose box is gone and whose leftover turns up again, exactly as it was recorded. */
  orphan(): Promise<{ lease: LeaseView; box: ListedResource }>
  addBackend(name: string, config?: Record<string, unknown>): Promise<void>
}
export type CleanupRow = Awaited<ReturnType<typeof cleanupOf>>
export type FindingRow = Awaited<ReturnType<typeof openFindings>>[number]

const cleanupOf = (store: Store, backend: string) =>
  store.read(({ db }) => db.selectFrom('cleanups').selectAll().where('backend', '=', backend).executeTakeFirstOrThrow())
const openFindings = (store: Store) =>
  store.read(({ db }) => db.selectFrom('findings').selectAll().where('state', '=', 'open').orderBy('id').execute())

export const sweepRounds = async (
  store: Store,
  given: { mode?: SweepMode; graceMs?: number; log?: Log; provider?: Scripted; start?: boolean } = {},
): Promise<Rounds> => {
  await setClock(store, t0)
  const provider = given.provider ?? scriptedProvider()
  const settings = { mode: given.mode ?? 'report', graceMs: given.graceMs ?? 900_000 }
  const engine = await makeEngine(store, provider, { sweeps: sweepsAs(settings), ...(given.log ? { log: given.log } : {}) })
  // Off for the moment of the start, so that its own enrolment makes no sweep that a suite did not ask for.
  settings.mode = 'off'
  await engine.start()
  settings.mode = given.mode ?? 'report'
  const certificates = async (backend?: string): Promise<Certificate[]> =>
    (
      await store.read(({ db }) =>
        db
          .selectFrom('sweeps')
          .selectAll()
          .$if(backend !== undefined, (query) => query.where('backend', '=', backend as string))
          .orderBy('started_at')
          .orderBy('id')
          .execute(),
      )
    ).map((row) => JSON.parse(row.certificate ?? '{}') as Certificate)
  return {
    store,
    provider,
    engine,
    settings,
    certificates: () => certificates(),
    cleanup: (backend = 'local') => cleanupOf(store, backend),
    open: () => openFindings(store),
    async round(afterMs = 2 * intervalMs, backend = 'local') {
      await enrolMissing(engine.context)
      const before = await until(async () => {
        const row = await cleanupOf(store, backend)
        return row.lock_owner === null ? row : undefined
      }, 'the cleanup is free')
      // The others wait, so that one row at a time is looked at.
      await store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: null }).where('lock_owner', 'is', null).execute())
      await advance(store, afterMs)
      await store.write((tx) => tx.db.updateTable('cleanups').set({ due_at: tx.now }).where('id', '=', before.id).execute())
      engine.context.signals.wake('sweep')
      await until(async () => {
        const now = await cleanupOf(store, backend)
        return now.lock_fence > before.lock_fence && now.lock_owner === null
      }, 'the cleanup is processed')
      return (await certificates(backend)).at(-1) ?? null
    },
    async orphan() {
      const lease = await leaseOn(engine, long)
      const box = provider.boxes.get(lease.cloudID ?? '') as ListedResource
      await releaseLease(engine.context, ann, lease.id, {})
      await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
      provider.boxes.set(box.resource.nativeId, box)
      return { lease, box }
    },
    addBackend: (name, config = {}) =>
      store.write(async (tx) => {
        await insertBackend(tx, {
          project: 'default',
          name,
          provider: provider.name,
          config: JSON.stringify(config),
          scope: null,
          is_default: 0,
        })
      }),
  }
}

/** Stops every engine after each test. */
export const engines = (): { keep: (rounds: Rounds) => Rounds; stop: () => Promise<void> } => {
  const kept: Rounds[] = []
  return {
    keep(rounds) {
      kept.push(rounds)
      return rounds
    },
    async stop() {
      for (const one of kept.splice(0)) await one.engine.stop(0)
    },
  }
}
