/** `leasehold warmup`: create without run. */
import type { Command } from 'commander'
import type { Cli } from './support/cli.ts'
import { defineCreate } from './support/lease-actions.ts'
import { examples } from './support/options.ts'

export const define = (command: Command, cli: Cli): void => {
  defineCreate(command, cli)
  examples(command, 'warmup --slug nightly --ttl 4h', 'run --id nightly -- make test', 'warmup --fleet ci --json')
}
