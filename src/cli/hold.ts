/** `leasehold hold add|list|remove`: a person's "not this", with a reason and an end. */
import type { Command } from 'commander'
import type { HoldView } from '../model/wire.ts'
import { isLeaseId } from '../model/ids.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { segment, type Client } from './support/http.ts'
import { getLease } from './support/leases.ts'
import { examples, wholeSeconds, withConnection, withJson } from './support/options.ts'
import { relative } from './support/text.ts'

const types = ['resource', 'instance', 'lease', 'project', 'scope'] as const

export const define = (command: Command, cli: Cli): void => {
  defineAdd(command.command('add'), cli)

  const list = command.command('list').summary('list holds').description('Lists the holds that stand.')
  list.option('--all', 'removed and ended ones too')
  withJson(withConnection(list))
  examples(list, 'hold list', 'hold list --all')
  act(list, async (flags) => {
    const { client } = await cli.session(flags)
    const { holds } = await client.get<{ holds: HoldView[] }>('/v1/holds', {
      query: { all: flags['all'] === true ? true : undefined },
    })
    const now = cli.io.now()
    cli.list(
      flags,
      holds,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'ON', cell: (one) => `${one.targetType} ${one.targetID}` },
        { title: 'REASON', cell: (one) => one.reason },
        { title: 'BY', cell: (one) => one.createdBy },
        { title: 'SINCE', cell: (one) => relative(one.createdAt, now) },
        { title: 'UNTIL', cell: (one) => (one.until === null ? 'no end' : relative(one.until, now)) },
        ...(flags['all'] ? [{ title: 'REMOVED', cell: (one: HoldView) => relative(one.removedAt, now) }] : []),
      ],
      'no holds',
    )
  })

  const remove = command.command('remove').alias('delete').summary('remove a hold').description('Removes a hold.').argument('<id>')
  withJson(withConnection(remove))
  examples(remove, 'hold remove hd_0190f3c2a1b47d4c8e5f60718293a4b5')
  act(remove, async (flags, id = '') => {
    const { client } = await cli.session(flags)
    // Removing twice changes nothing, and is told apart for people only.
    const before = flags.json ? undefined : await findHold(client, id)
    const { body } = await client.call<{ hold?: HoldView }>('DELETE', `/v1/holds/${segment(id)}`)
    cli.show(flags, body.hold ?? body, () =>
      before?.removedAt ? `hold ${id} was removed already, at ${before.removedAt}\n` : `hold ${id} is removed\n`,
    )
  })
}

const findHold = async (client: Client, id: string): Promise<HoldView | undefined> =>
  (await client.get<{ holds: HoldView[] }>('/v1/holds', { query: { all: true } })).holds.find((one) => one.id === id)

const typeOf = (target: string, said: unknown): (typeof types)[number] => {
  if (said !== undefined) {
    const type = types.find((one) => one === said)
    if (!type) throw usageError(`--type must be one of ${types.join(', ')}`)
    return type
  }
  if (/^[^/\s]+\/[^/\s]+\/\S+$/.test(target)) return 'resource'
  return /^in_[0-9a-f]{32}$/.test(target) ? 'instance' : 'lease'
}

const defineAdd = (command: Command, cli: Cli): void => {
  command
    .summary('keep something from being removed')
    .description('Keeps a lease, an instance, a resource, a project or a scope from being removed.')
    .argument('<target>', 'a lease by id or slug, an instance by id, a resource as provider/location/native-id; for others say --type')
    .option('--type <type>', types.join(', '))
    .option('--reason <text>', 'why (needed); shown wherever the hold stops something')
    .option('--for <duration>', 'how long (default: until it is removed)', wholeSeconds)
  withJson(withConnection(command))
  examples(
    command,
    'hold add brave-otter --reason "looking into a failure" --for 2h',
    'hold add simulated/sim-a/i-3f9c2a51 --reason "whose is this?"',
    'hold add machine:0f3a --type scope --reason "moving house"',
  )
  act(command, async (flags, target = '') => {
    if (!flags['reason']) throw usageError('say why: --reason TEXT')
    const { client } = await cli.session(flags)
    const targetType = typeOf(target, flags['type'])
    const targetID = targetType === 'lease' && !isLeaseId(target) ? (await getLease(client, target)).id : target
    const body = { targetType, targetID, reason: flags['reason'], ...(flags['for'] === undefined ? {} : { durationSeconds: flags['for'] }) }
    const { hold } = (await client.call<{ hold: HoldView }>('POST', '/v1/holds', { body })).body
    if (hold.warning !== undefined) cli.warn(hold.warning)
    cli.show(
      flags,
      hold,
      () => `hold ${hold.id} on ${hold.targetType} ${hold.targetID}${hold.until === null ? '' : ` until ${hold.until}`}\n`,
    )
  })
}
