/** `leasehold heartbeat ID`, also `touch`. */
import type { Command } from 'commander'
import type { Cli } from './support/cli.ts'
import { defineHeartbeat } from './support/lease-actions.ts'
import { examples } from './support/options.ts'

export const define = (command: Command, cli: Cli): void => {
  defineHeartbeat(command, cli)
  examples(command, 'heartbeat brave-otter', 'touch lh_0123456789ab --idle 1h')
}
