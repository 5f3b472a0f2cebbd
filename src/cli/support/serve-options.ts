import type { Setting, Settings } from '../../model/config.ts'
import type { SweepSettings } from '../../model/sweep-settings.ts'

/** What `leasehold serve` hands to the coordinator. */
export interface ServeOptions {
  /** Every setting with its origin: for messages that say which setting is wrong, and where it was made. */
  settings: Settings
  /** The settings of each provider's sweeps. */
  sweeps: ReadonlyMap<string, SweepSettings>
  /** Calls a second in one account of each provider. */
  rates: ReadonlyMap<string, Setting<number | null>>
}
