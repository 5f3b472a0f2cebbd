/** `leasehold freeze`: the stop switch. No removal begins in a frozen scope. */
import type { Command } from 'commander'
import type { FreezeView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import type { Client } from './support/http.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { printable, relative } from './support/text.ts'

const listFreezes = async (client: Client): Promise<FreezeView[]> => (await client.get<{ freezes: FreezeView[] }>('/v1/freezes')).freezes

export const define = (command: Command, cli: Cli): void => {
  command
    .option('--scope <scope>', 'only this scope (default: every one)')
    .option('--reason <text>', 'why; shown wherever it stops something')
    .option('--list', 'show what is frozen, and freeze nothing')
  withJson(withConnection(command))
  examples(command, 'freeze --reason "provider outage"', 'freeze --list', 'unfreeze')
  act(command, async (flags) => {
    if (!flags['list'] && !flags['reason']) throw usageError('say why: --reason TEXT')
    if (flags['list'] && (flags['reason'] !== undefined || flags['scope'] !== undefined))
      throw usageError('--list only shows: leave out --scope and --reason')
    const { client } = await cli.session(flags)
    if (!flags['list']) {
      const body = { ...(flags['scope'] === undefined ? {} : { scope: flags['scope'] }), reason: flags['reason'] }
      const scope = typeof flags['scope'] === 'string' ? flags['scope'] : '*'
      // Freezing twice replaces the reason, and is told apart for people only.
      const before = flags.json ? undefined : (await listFreezes(client)).find((one) => one.scope === scope)
      const answer = (await client.call<{ freeze?: FreezeView }>('POST', '/v1/freezes', { body })).body
      const what = scope === '*' ? 'every scope' : scope
      cli.show(flags, answer.freeze ?? answer, () =>
        before === undefined
          ? `${what} is frozen: no removal begins until "leasehold unfreeze"\n`
          : `${what} was frozen already, by ${printable(before.createdBy)} since ${before.createdAt} (${printable(before.reason)}); this reason replaces that one\n`,
      )
      return
    }
    const freezes = await listFreezes(client)
    const now = cli.io.now()
    cli.list(
      flags,
      freezes,
      [
        { title: 'SCOPE', cell: (one) => (one.scope === '*' ? 'every scope' : one.scope) },
        { title: 'REASON', cell: (one) => one.reason },
        { title: 'BY', cell: (one) => one.createdBy },
        { title: 'SINCE', cell: (one) => relative(one.createdAt, now) },
      ],
      'nothing is frozen',
    )
  })
}
