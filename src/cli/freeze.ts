/** `leasehold freeze`: the stop switch. No removal begins in a frozen scope. */
import type { Command } from 'commander'
import type { FreezeView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { relative } from './support/text.ts'

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
      const answer = (await client.call<{ freeze?: FreezeView }>('POST', '/v1/freezes', { body })).body
      const what = typeof flags['scope'] === 'string' ? flags['scope'] : 'every scope'
      cli.show(flags, answer.freeze ?? answer, () => `${what} is frozen: no removal begins until "leasehold unfreeze"\n`)
      return
    }
    const { freezes } = await client.get<{ freezes: FreezeView[] }>('/v1/freezes')
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
