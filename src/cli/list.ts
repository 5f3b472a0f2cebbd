/** `leasehold list`: the leases that you may see. */
import type { Command } from 'commander'
import type { Cli } from './support/cli.ts'
import { defineList } from './support/lease-actions.ts'
import { examples } from './support/options.ts'

export const define = (command: Command, cli: Cli): void => {
  defineList(command, cli)
  examples(command, 'list', 'list --state active --json')
}
