/** `leasehold findings`: what was seen and needs time or a person. */
import type { Command } from 'commander'
import type { FindingView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { emptyText, reportQuery, sayUnknown, unknownColumn, withReportFilters } from './support/report-options.ts'
import { relative, stateStyle } from './support/text.ts'

/** A resource by its key, as everywhere: its name is what somebody wrote on it, and a copy has that of its original. */
const targetText = ({ target }: FindingView): string =>
  target.type === 'resource' ? target.id : `${target.type}:${target.name || target.id}`

export const define = (command: Command, cli: Cli): void => {
  command.option('--state <state>', 'open (default), resolved or all')
  withReportFilters(command, 'first seen')
  withJson(withConnection(command))
  examples(command, 'findings', 'findings --state all --json', 'findings --project web --label team=ci')
  act(command, async (flags) => {
    const state = (flags['state'] as string | undefined) ?? 'open'
    if (!['open', 'resolved', 'all'].includes(state)) throw usageError('--state must be open, resolved or all')
    const { project: _, ...rest } = flags
    const { client } = await cli.session(rest)
    const read = async (query: Record<string, string | number | undefined>): Promise<FindingView[]> =>
      (await client.get<{ findings: FindingView[] }>('/v1/findings', { query })).findings
    const asked = state === 'all' ? {} : { state }
    const findings = await read({ ...asked, ...reportQuery(flags) })
    const kind = state === 'all' ? 'finding' : `${state} finding`
    const now = cli.io.now()
    cli.list(
      flags,
      findings,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'CODE', cell: (one) => one.code },
        { title: 'STATE', cell: (one) => one.state, style: (one) => stateStyle(one.state) },
        { title: 'TARGET', cell: targetText },
        { title: 'FIRST SEEN', cell: (one) => relative(one.firstSeenAt, now) },
        { title: 'LAST SEEN', cell: (one) => relative(one.lastSeenAt, now) },
        { title: 'TIMES', cell: (one) => one.timesSeen, align: 'right' },
        ...unknownColumn(findings),
        { title: 'MESSAGE', cell: (one) => one.message },
      ],
      await emptyText(flags, findings, reportQuery(flags), { none: `no ${kind}s`, one: kind }, (limit) => read({ ...asked, limit })),
    )
    sayUnknown(cli, findings)
  })
}
