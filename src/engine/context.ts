/** What every part of the engine works with; made once by the composition root. */
import type { InstallationRow } from '../store/installation.ts'
import type { Store } from '../store/store.ts'
import type { Provider } from '../providers/contract.ts'
import type { AdmissionCaps } from '../model/admission.ts'
import type { SweepSettings } from '../model/sweep-settings.ts'
import type { LimitPolicy } from '../model/limits.ts'
import type { Budgets } from './budget/budgets.ts'
import type { Keyring } from './keyring.ts'
import type { Meter } from './meter.ts'
import type { Signals } from './signals.ts'

/** The part of a logger that the engine uses; telemetry is passed in, never imported. */
export interface Log {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

export const silentLog: Log = { debug() {}, info() {}, warn() {}, error() {} }

export interface EngineContext {
  store: Store
  /** Each call of theirs counts to its account's budget. */
  providers: ReadonlyMap<string, Provider>
  budgets: Budgets
  /** The setting of a provider: calls a second in one account; null: no limit. */
  callsPerSecond(provider: string): number | null
  /** As it was when this process began: a fork makes it begin anew. */
  installation: Pick<InstallationRow, 'installation_id' | 'secret'>
  keyring: Keyring
  /** Names this process in locks. */
  replicaId: string
  log: Log
  meter: Meter
  signals: Signals
  /** The settings of a provider's sweeps, with their origin (orphans R75a). */
  sweepSettings(provider: string): SweepSettings
  /** How much sweeps may take back without a person (I8). */
  limits: LimitPolicy
  /** How many leases and creates projects and owners may have. */
  caps: AdmissionCaps
  /** Bars approving one's own plan. */
  fourEyes: boolean
  /** After a stall of this process: the deadlines that fell into it are moved first (decisions 1). Undefined when there was none. */
  awake(): Promise<void> | undefined
}

/** The provider behind a name; a database may know one that this binary does not have. */
export const providerOf = (context: EngineContext, name: string): Provider => {
  const provider = context.providers.get(name)
  if (!provider) throw new Error(`this coordinator has no provider "${name}"`)
  return provider
}
