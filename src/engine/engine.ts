/** The engine: the pipelines on one store, started and stopped together. */
import { hex, uuidv7Hex } from '../lib/ids.ts'
import type { Provider } from '../providers/contract.ts'
import type { Store } from '../store/store.ts'
import { createBudgets } from './budget/budgets.ts'
import { metered } from './budget/metered.ts'
import { createAwake, type Awake } from './awake.ts'
import type { EngineContext, Log } from './context.ts'
import { noMeter, type Meter } from './meter.ts'
import { expirePipeline } from './expire.ts'
import { installationOf } from './installation.ts'
import { createKeyring } from './keyring.ts'
import { withFeed } from './feed.ts'
import { createNewsroom } from './news.ts'
import { createPipeline } from './pipeline.ts'
import { fleetPipeline } from './fleet/index.ts'
import { lookAtIdle } from '../store/fleets.ts'
import { provisionPipeline } from './provision.ts'
import { removePipeline } from './remove.ts'
import { describeSelf, type Self } from './replica.ts'
import { createRetention, defaultRetain, type RetainPolicy } from './retain.ts'
import { createSealer } from './seal.ts'
import { createSignals } from './signals.ts'
import { noCaps, type AdmissionCaps } from '../model/admission.ts'
import { defaultEventsTtlSeconds } from '../model/config.ts'
import { defaultLimits, type LimitPolicy } from '../model/limits.ts'
import { defaultCallsPerSecond } from '../model/rate-settings.ts'
import { sweepSettings, type SweepSettings } from '../model/sweep-settings.ts'
import { createEnrolment } from './sweep/enrol.ts'
import { sweepPipeline } from './sweep/index.ts'
import { createWhereabouts } from './whereabouts.ts'

const defaultSweepSettings = (provider: string): SweepSettings => {
  const result = sweepSettings({}, provider, false)
  if (!result.ok) throw new Error(result.problem)
  return result.settings
}

export interface EngineOptions {
  store: Store
  providers: readonly Provider[]
  log: Log
  version: string
  /** The settings of a provider's sweeps; default: those of an empty environment. */
  sweepSettings?: (provider: string) => SweepSettings
  /** Default: those of decisions. */
  limits?: LimitPolicy
  /** Default: none. */
  caps?: AdmissionCaps
  fourEyes?: boolean
  /** Calls a second in one account of this provider; null: any number, until it throttles. Default: that of `defaultCallsPerSecond`. */
  callsPerSecond?: (provider: string) => number | null
  /** How long events are kept, in ms; 0 or less: they are logged and not stored (orphans R86). Default: 30 days. */
  eventsTtlMs?: number
  /** How long what is over keeps its own rows. Default: 90 days each. */
  retain?: RetainPolicy
  /** Missing: nothing is counted. */
  meter?: Meter
  /** false: no alive marks and no clock watch; for tests that move the database's clock. */
  watchClocks?: boolean
}

export interface Engine {
  context: EngineContext
  self: Self
  awake: Awake
  /** Forgives the downtime, then runs the pipelines. */
  start(): Promise<void>
  /** Lets calls in flight finish and records their results, `graceMs` at most. The store stays open. */
  stop(graceMs?: number): Promise<void>
  ready(): boolean
  /** Resolves when its database was forked: nothing is made or taken back any more until an engine is made anew. */
  forked: Promise<void>
}

export const createEngine = async (options: EngineOptions): Promise<Engine> => {
  const { log } = options
  const eventsTtlMs = options.eventsTtlMs ?? defaultEventsTtlSeconds * 1000
  const store = withFeed(options.store, eventsTtlMs, log)
  const installation = await installationOf(store)
  const replicaId = `re_${uuidv7Hex(Date.now())}${hex(2)}`
  const self = describeSelf(replicaId, options.version)
  const awake = createAwake(store, self, log, options.watchClocks ?? true)
  const callsPerSecond = options.callsPerSecond ?? defaultCallsPerSecond
  const budgets = createBudgets(store, callsPerSecond)
  const meter = options.meter ?? noMeter
  const context: EngineContext = {
    store,
    providers: new Map(options.providers.map((provider) => [provider.name, metered(provider, budgets, meter)])),
    budgets,
    callsPerSecond,
    installation,
    keyring: createKeyring(store, installation.installation_id),
    replicaId,
    log,
    meter,
    signals: createSignals(),
    sweepSettings: options.sweepSettings ?? defaultSweepSettings,
    limits: options.limits ?? defaultLimits,
    caps: options.caps ?? noCaps,
    fourEyes: options.fourEyes ?? false,
    awake: () => awake.awake(),
  }
  const pipelines = [
    createPipeline(context, provisionPipeline(context)),
    createPipeline(context, expirePipeline(context), (now) => {
      void awake.awake()?.catch(() => {})
      return awake.paused(now) !== null
    }),
    createPipeline(context, removePipeline(context)),
    createPipeline(context, sweepPipeline(context)),
    createPipeline(context, fleetPipeline(context)),
  ]
  const enrolment = createEnrolment(context)
  const retention = createRetention(context, eventsTtlMs, options.retain ?? defaultRetain)
  const sealer = createSealer(context)
  const newsroom = createNewsroom(store.news, replicaId, context.signals, log)
  const whereabouts = createWhereabouts(store, installation.installation_id, log, options.watchClocks ?? true)
  context.signals.onForked(() => void whereabouts.look().catch(() => {}))
  let running = false
  void whereabouts.forked.then(() => (running = false))
  return {
    context,
    self,
    awake,
    async start() {
      await awake.start()
      await newsroom.start()
      // Before anything is taken back.
      await whereabouts.start()
      await store.write(lookAtIdle)
      for (const pipeline of pipelines) pipeline.start()
      enrolment.start()
      retention.start()
      sealer.start()
      running = true
    },
    async stop(graceMs = 10_000) {
      running = false
      enrolment.stop()
      await retention.stop()
      await Promise.all(pipelines.map((pipeline) => pipeline.stop(graceMs)))
      await sealer.stop()
      await newsroom.stop()
      await whereabouts.stop()
      await awake.stop()
    },
    ready: () => running,
    forked: whereabouts.forked,
  }
}
