/** `leasehold findings`: what was seen and needs time or a person. */
import type { Command } from 'commander'
import type { FindingView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { reportQuery, sayUnknown, unknownColumn, withReportFilters } from './support/report-options.ts'
import { relative, stateStyle } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  command.option('--state <state>', 'open or resolved')
  withReportFilters(command, 'first seen')
  withJson(withConnection(command))
  examples(command, 'findings', 'findings --state open --json', 'findings --project web --label team=ci')
  act(command, async (flags) => {
    const state = flags['state'] as string | undefined
    if (state !== undefined && !['open', 'resolved'].includes(state)) throw usageError('--state must be open or resolved')
    const { project: _, ...rest } = flags
    const { client } = await cli.session(rest)
    const { findings } = await client.get<{ findings: FindingView[] }>('/v1/findings', { query: { state, ...reportQuery(flags) } })
    const now = cli.io.now()
    cli.list(
      flags,
      findings,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'CODE', cell: (one) => one.code },
        { title: 'STATE', cell: (one) => one.state, style: (one) => stateStyle(one.state) },
        { title: 'TARGET', cell: (one) => `${one.target.type}:${one.target.name || one.target.id}` },
        { title: 'FIRST SEEN', cell: (one) => relative(one.firstSeenAt, now) },
        { title: 'LAST SEEN', cell: (one) => relative(one.lastSeenAt, now) },
        { title: 'TIMES', cell: (one) => one.timesSeen, align: 'right' },
        ...unknownColumn(findings),
        { title: 'MESSAGE', cell: (one) => one.message },
      ],
      'no findings',
    )
    sayUnknown(cli, findings)
  })
}
