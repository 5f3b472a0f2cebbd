import type { Settings } from '../../model/config.ts'

/** What `leasehold serve` hands to the coordinator. */
export interface ServeOptions {
  /** Every setting with its origin: for messages that say which setting is wrong, and where it was made. */
  settings: Settings
}
