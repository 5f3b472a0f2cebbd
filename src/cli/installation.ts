/** `leasehold installation`: which database this is, and a person's word on which one is the true one. */
import type { Command } from 'commander'
import type { InstallationView } from '../model/wire-installation.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { printable, relative } from './support/text.ts'

interface Answer {
  installation: InstallationView
}

const describe = (cli: Cli, view: InstallationView): string => {
  const now = cli.io.now()
  const keys = view.keys.filter((key) => key.retiredAt === null)
  const head = cli.fields([
    ['installation', view.installation],
    ['epoch', String(view.epoch)],
    ['made', relative(view.createdAt, now)],
    ['adopted', view.adoptedAt === null ? null : relative(view.adoptedAt, now)],
    ['forked from', view.former.join(', ') || null],
    ['lives in', view.place === null ? 'not looked yet' : printable(view.place)],
    ['found in', view.place === view.found ? null : printable(view.found)],
    ['key', `${keys.map((key) => key.id).join(', ') || 'none'}, ${view.keys.length - keys.length} retired`],
    ['removals', view.stops.length === 0 ? 'go on' : 'stopped'],
  ])
  if (view.stops.length === 0) return head
  const stops = cli.table(
    [
      { title: 'STOPPED', cell: (one) => (one.scope === '*' ? 'every scope' : one.scope) },
      { title: 'SINCE', cell: (one) => relative(one.since, now) },
      { title: 'WHY', cell: (one) => one.why },
    ],
    view.stops,
  )
  return `${head}\n${stops}\nIf this database goes on: leasehold installation adopt --original-is-stopped --reason TEXT\nIf another one does:      leasehold installation fork --reason TEXT\n`
}

const defineShow = (command: Command, cli: Cli): void => {
  withJson(withConnection(command))
  examples(command, 'installation', 'installation --json')
  act(command, async (flags) => {
    const { client } = await cli.session(flags)
    const { installation } = await client.get<Answer>('/v1/installation')
    cli.show(flags, installation, (view) => describe(cli, view))
  })
}

const defineAct = (
  parent: Command,
  cli: Cli,
  given: { name: string; path: string; description: string; example: string; told: (view: InstallationView) => string },
): Command => {
  const command = parent.command(given.name).description(given.description).option('--reason <text>', 'why; kept in the audit (required)')
  withJson(withConnection(command))
  examples(command, given.example)
  return act(command, async (flags) => {
    if (typeof flags['reason'] !== 'string') throw usageError('say why: --reason TEXT')
    const { client } = await cli.session(flags)
    const body = {
      reason: flags['reason'],
      ...(flags['always'] ? { when: 'always' } : {}),
      ...(flags['originalIsStopped'] ? { original: 'stopped' } : {}),
    }
    const { installation } = (await client.call<Answer>('POST', given.path, { body })).body
    cli.show(flags, installation, given.told)
  })
}

export const define = (command: Command, cli: Cli): void => {
  defineShow(command, cli)
  defineAct(command, cli, {
    name: 'adopt',
    path: '/v1/installation/adopt',
    description:
      'This is the database that goes on: removals go on here. Two coordinators with one identity may both delete what the other one holds, so stop the one on the other database first, for good, and say so.',
    example: 'installation adopt --original-is-stopped --reason "restored after the disk of the old machine failed"',
    told: (view) => `this database goes on as installation ${view.installation}, epoch ${view.epoch}: removals go on\n`,
  }).option('--original-is-stopped', 'that no coordinator runs on the other database any more (required)')
  defineAct(command, cli, {
    name: 'fork',
    path: '/v1/installation/fork',
    description:
      'Another database goes on: this one becomes a new installation, which holds nothing. What it held stays as history and is never touched; its live leases end here.',
    example: 'installation fork --reason "a copy for trying the new version"',
    told: (view) =>
      `this database is installation ${view.installation} from now on and holds nothing; its coordinator begins anew. Nothing of ${view.former.at(-1) ?? 'the other one'} is touched\n`,
  }).option('--always', 'also if removals are not stopped')
  defineAct(command, cli, {
    name: 'rotate-key',
    path: '/v1/installation/keys',
    description: 'Make a new key for the keyed tag. What older keys made is verified on.',
    example: 'installation rotate-key --reason "somebody left"',
    told: (view) => `key ${view.keys.find((key) => key.retiredAt === null)?.id ?? 'none'} makes new tags from now on\n`,
  })
}
