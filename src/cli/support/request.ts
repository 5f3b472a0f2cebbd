/** The options that describe a new lease, shared by `run`, `warmup` and `lease create`. */
import type { Command } from 'commander'
import type { Settings } from '../../model/config.ts'
import type { Flags } from './cli.ts'
import type { LeaseRequest } from './create-lease.ts'
import { usageError } from './errors.ts'
import { alsoKnownAs, keyValue, wholeSeconds } from './options.ts'

export const withLeaseOptions = (command: Command): Command => {
  command
    .optionsGroup('Lease:')
    .option('--ttl <duration>', 'longest life (default 90m, at most 24h)', wholeSeconds)
    .option('--idle <duration>', 'ends when not used for so long (default 30m, at most 24h)', wholeSeconds)
    .option('--slug <slug>', 'a name for people (default: one is made up)')
    .option('--provider <provider>', 'a provider other than that of the default backend')
    .option('--backend <backend>', "one of the project's backends")
    .option('--fleet <fleet>', 'a box of this fleet that is ready; where none is, one is made')
    .option('--project <project>', 'the project that owns it')
    .option('--label <key=value>', 'a label; may be repeated', keyValue)
  return alsoKnownAs(command, '--idle-timeout <duration>', wholeSeconds)
}

export const idleSeconds = (flags: Flags): number | undefined => (flags['idle'] ?? flags['idleTimeout']) as number | undefined

const given = (flags: Flags, name: string): Record<string, unknown> => (flags[name] === undefined ? {} : { [name]: flags[name] })

export const leaseRequest = (flags: Flags, settings: Settings): LeaseRequest => {
  if (flags['slug'] === '') throw usageError('--slug must not be empty')
  const idle = idleSeconds(flags)
  return {
    ...given(flags, 'slug'),
    ...given(flags, 'provider'),
    ...given(flags, 'backend'),
    ...given(flags, 'fleet'),
    ...(settings.project.value === null ? {} : { project: settings.project.value }),
    ...(flags['ttl'] === undefined ? {} : { ttlSeconds: flags['ttl'] as number }),
    ...(idle === undefined ? {} : { idleTimeoutSeconds: idle }),
    ...(flags['keep'] ? { keep: true } : {}),
    ...(flags['label'] === undefined ? {} : { labels: flags['label'] as Record<string, string> }),
  }
}
