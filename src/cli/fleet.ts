/** `leasehold fleet create|list|scale|delete`: boxes that are kept ready. */
import { InvalidArgumentError, type Command } from 'commander'
import { counted } from '../lib/counted.ts'
import { formatDuration } from '../lib/duration.ts'
import { largestFleet } from '../model/fleet.ts'
import type { FleetView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { asTyped } from './support/create-lease.ts'
import { usageError } from './support/errors.ts'
import { segment } from './support/http.ts'
import { examples, keyValue, wholeNumber, wholeSeconds, withConnection, withJson } from './support/options.ts'
import { relative, stateStyle } from './support/text.ts'

const size = wholeNumber(0, largestFleet)

export const define = (command: Command, cli: Cli): void => {
  defineCreate(command.command('create'), cli)
  defineList(command.command('list'), cli)
  defineScale(command.command('scale'), cli)
  defineDelete(command.command('delete'), cli)
}

const defineCreate = (command: Command, cli: Cli): void => {
  command
    .summary('keep boxes ready')
    .description('Keeps boxes of a backend ready. "leasehold run --fleet NAME" takes one at once.')
    .argument('<name>')
    .option('--size <number>', 'how many are to be ready (needed)', size)
    .option('--backend <backend>', "one of the project's backends (default: its default)")
    .option('--project <project>', 'its project')
    .option('--ttl <duration>', 'what each must be able to give (default 90m, at most 22h)', wholeSeconds)
    .option('--label <key=value>', 'a label of the boxes; may be repeated', keyValue)
  withJson(withConnection(command))
  examples(command, 'fleet create ci --size 5', 'fleet create nightly --size 2 --backend lab --ttl 4h')
  act(command, async (flags, name = '') => {
    if (flags['size'] === undefined) throw usageError('say how many are to be ready: --size NUMBER')
    const { client, settings } = await cli.session(flags)
    const body = {
      name,
      size: flags['size'] as number,
      ...(flags['backend'] === undefined ? {} : { backend: flags['backend'] }),
      ...(settings.project.value === null ? {} : { project: settings.project.value }),
      ...(flags['ttl'] === undefined ? {} : { ttlSeconds: flags['ttl'] as number }),
      ...(flags['label'] === undefined ? {} : { labels: flags['label'] }),
    }
    const { fleet, warnings } = (await client.call<{ fleet: FleetView; warnings?: string[] }>('POST', '/v1/fleets', { body })).body
    for (const warning of warnings ?? []) cli.warn(asTyped(warning))
    cli.show(
      flags,
      fleet,
      () =>
        `fleet ${fleet.name} of project ${fleet.project} is made: ${counted(fleet.size, 'box is', 'boxes are')} kept ready on ${fleet.backend}\n`,
    )
  })
}

const defineList = (command: Command, cli: Cli): void => {
  command
    .summary('list fleets')
    .description(
      'Lists fleets: how many boxes are to be ready, are, and are on their way, why one that is held makes no more, and why boxes are set aside.',
    )
    .option('--project <project>', 'only of this project')
  withJson(withConnection(command))
  examples(command, 'fleet list', 'fleet list --project web --json')
  act(command, async (flags) => {
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    const { fleets } = await client.get<{ fleets: FleetView[] }>('/v1/fleets', { query: { project: project as string } })
    const now = cli.io.now()
    cli.list(
      flags,
      fleets,
      [
        { title: 'NAME', cell: (one) => one.name },
        { title: 'PROJECT', cell: (one) => one.project },
        { title: 'BACKEND', cell: (one) => one.backend },
        { title: 'STATE', cell: (one) => one.state, style: (one) => stateStyle(one.state) },
        { title: 'SIZE', cell: (one) => one.size, align: 'right' },
        { title: 'READY', cell: (one) => one.ready, align: 'right' },
        { title: 'COMING', cell: (one) => one.coming, align: 'right' },
        { title: 'TAKEN', cell: (one) => one.taken, align: 'right' },
        { title: 'ENDING', cell: (one) => one.ending, align: 'right' },
        { title: 'ASIDE', cell: (one) => one.setAside, align: 'right' },
        { title: 'TTL', cell: (one) => formatDuration(one.ttlSeconds * 1000) },
        { title: 'CREATED', cell: (one) => relative(one.createdAt, now) },
        { title: 'WHY', cell: (one) => [one.heldWhy, one.setAsideWhy].filter((why) => why !== null).join('; ') || null },
      ],
      'no fleets',
    )
  })
}

const defineScale = (command: Command, cli: Cli): void => {
  command
    .summary('change how many are kept ready, pause a fleet, or let it go on')
    .description('Changes how many boxes a fleet keeps ready. Any word but --pause ends a hold.')
    .argument('<name>')
    .argument('[size]', 'how many are to be ready', (text: string) => {
      if (text === '') throw new InvalidArgumentError('It is empty.')
      return size(text) as unknown as string
    })
    .option('--pause', 'make and replace nothing for now')
    .option('--resume', 'go on, also after a hold')
    .option('--project <project>', 'its project')
  withJson(withConnection(command))
  examples(command, 'fleet scale ci 10', 'fleet scale ci --pause', 'fleet scale ci --resume')
  act(command, async (flags, name = '', wanted) => {
    if (flags['pause'] && flags['resume']) throw usageError('--pause and --resume contradict each other')
    if (wanted === undefined && !flags['pause'] && !flags['resume']) throw usageError('say what changes: a size, --pause or --resume')
    const { client, settings } = await cli.session(flags)
    const body = {
      ...(wanted === undefined ? {} : { size: Number(wanted) }),
      ...(flags['pause'] ? { paused: true } : {}),
      ...(flags['resume'] ? { paused: false } : {}),
    }
    const { fleet } = (
      await client.call<{ fleet: FleetView }>('PATCH', `/v1/fleets/${segment(name)}`, { body, query: { project: settings.project.value } })
    ).body
    cli.show(flags, fleet, () => `fleet ${fleet.name} is ${fleet.state}: ${fleet.size} are to be ready, ${fleet.ready} are\n`)
  })
}

const defineDelete = (command: Command, cli: Cli): void => {
  command
    .summary('let a fleet drain')
    .description('Deletes a fleet: what nobody holds is taken back, and leases on its boxes go on until they end.')
    .argument('<name>')
    .option('--project <project>', 'its project')
  withJson(withConnection(command))
  examples(command, 'fleet delete ci --project web')
  act(command, async (flags, name = '') => {
    const { client, settings } = await cli.session(flags)
    const { fleet } = (
      await client.call<{ fleet: FleetView }>('DELETE', `/v1/fleets/${segment(name)}`, { query: { project: settings.project.value } })
    ).body
    const left = fleet.ready + fleet.coming + fleet.ending
    const held = fleet.taken === 0 ? '' : `; ${fleet.taken} go when their leases end`
    cli.show(flags, fleet, () => `fleet ${fleet.name} is deleted, ${counted(left, 'box is', 'boxes are')} taken back${held}\n`)
  })
}
