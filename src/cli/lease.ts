/** `leasehold lease create|list|get|heartbeat|release`: the API's own lease operations, one for one. */
import type { Command } from 'commander'
import type { LeaseView } from '../model/wire.ts'
import { keepClaims } from './support/claim-keeper.ts'
import { act, type Cli } from './support/cli.ts'
import { defineCreate, defineHeartbeat, defineList, showLease } from './support/lease-actions.ts'
import { describeLease } from './support/lease-text.ts'
import { getLease, leasePath } from './support/leases.ts'
import { examples, withConnection, withJson } from './support/options.ts'

export const define = (command: Command, cli: Cli): void => {
  const create = command.command('create').summary('create a lease').description('Creates a lease and waits until its box is ready.')
  defineCreate(create, cli)
  examples(create, 'lease create --slug nightly --ttl 4h', 'lease create --json | jq -r .leaseToken')

  const list = command.command('list').summary('list leases').description('Lists the leases that you may see, newest first.')
  defineList(list, cli)
  examples(list, 'lease list', 'lease list --state active --json')

  const get = command
    .command('get')
    .summary('show one lease')
    .description('Shows one lease. Reading it does not touch it.')
    .argument('<id|slug>')
  withJson(withConnection(get))
  examples(get, 'lease get brave-otter', 'lease get lh_0123456789ab --json')
  act(get, (flags, identifier = '') => showLease(cli, flags, identifier))

  const heartbeat = command
    .command('heartbeat')
    .alias('touch')
    .summary('say that it is still in use')
    .description('Moves the idle clock of a lease.')
  defineHeartbeat(heartbeat, cli)
  examples(heartbeat, 'lease heartbeat brave-otter')

  defineRelease(command.command('release'), cli)
}

const defineRelease = (command: Command, cli: Cli): void => {
  command
    .summary('end a lease')
    .description(
      'Ends a lease. Its box is removed unless the lease was made with --keep; does not wait for that. "leasehold stop" and its alias "leasehold release" remove also a kept box, and wait.',
    )
    .argument('<id|slug>')
    .option('--delete', 'remove the box, kept or not')
    .option('--no-delete', 'leave the box, kept or not')
  withJson(withConnection(command))
  examples(command, 'lease release brave-otter', 'lease release brave-otter --no-delete')
  act(command, async (flags, identifier = '') => {
    const session = await cli.session(flags)
    const keeper = keepClaims(cli, session)
    const id = identifier.startsWith('lh_') ? identifier : (await getLease(session.client, identifier, keeper.store)).id
    const body = typeof flags['delete'] === 'boolean' ? { delete: flags['delete'] } : {}
    const { lease } = (await session.client.call<{ lease: LeaseView }>('POST', `${leasePath(id)}/release`, { body })).body
    cli.show(flags, lease, () => describeLease(cli, lease))
    await keeper.settle(lease)
  })
}
