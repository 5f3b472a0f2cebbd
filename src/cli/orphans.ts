/** `leasehold orphans`: what sweeps found, and how far each is from being taken back. */
import type { Command } from 'commander'
import type { FindingCode } from '../model/codes.ts'
import type { FindingView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { emptyText, reportQuery, sayUnknown, unknownColumn, withReportFilters } from './support/report-options.ts'
import { relative, stateStyle } from './support/text.ts'

const codes: readonly FindingCode[] = [
  'orphan',
  'contradiction',
  'protected',
  'left-behind',
  'missing',
  'not-seen',
  'malformed-ref',
  'stuck',
  'scope-stranded',
  'denied-kind',
  'counts-implausible',
  'plan-waiting',
]

const quarantine = ({ quarantine: one }: FindingView, nowMs: number): string =>
  one === null ? '' : `${one.timesSeen}x since ${relative(one.since, nowMs)}`

export const define = (command: Command, cli: Cli): void => {
  command
    .option('--all', 'resolved ones too')
    .option('--code <code>', `only ${codes.join(', ')}`)
    .option('--backend <backend>', 'only of this backend')
  withReportFilters(command, 'first seen')
  withJson(withConnection(command))
  examples(command, 'orphans', 'orphans --code contradiction', 'orphans --owner ann --older-than 2h', 'orphans --all --json')
  act(command, async (flags) => {
    const code = flags['code'] as string | undefined
    if (code !== undefined && !codes.some((one) => one === code)) throw usageError(`--code must be one of ${codes.join(', ')}`)
    const { project: _, ...rest } = flags
    const { client } = await cli.session(rest)
    const state = flags['all'] === true ? undefined : 'open'
    const filter = { ...reportQuery(flags), code, backend: flags['backend'] as string | undefined }
    const read = async (narrowed: Record<string, string | number | undefined>): Promise<FindingView[]> => {
      const query = { ...narrowed, state, code: narrowed['code'] ?? codes.join(','), limit: 500 }
      return (await client.get<{ findings: FindingView[] }>('/v1/findings', { query })).findings
    }
    const findings = await read(filter)
    const now = cli.io.now()
    cli.list(
      flags,
      findings,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'CODE', cell: (one) => one.code },
        { title: 'STATE', cell: (one) => one.state, style: (one) => stateStyle(one.state) },
        { title: 'TARGET', cell: (one) => one.target.id },
        { title: 'REASON', cell: (one) => one.reason },
        { title: 'FIRST SEEN', cell: (one) => relative(one.firstSeenAt, now) },
        { title: 'TIMES', cell: (one) => one.timesSeen, align: 'right' },
        { title: 'QUARANTINE', cell: (one) => quarantine(one, now) },
        { title: 'ELIGIBLE', cell: (one) => relative(one.quarantine?.eligibleAt, now) },
        ...unknownColumn(findings),
        { title: 'MESSAGE', cell: (one) => one.message },
      ],
      await emptyText(
        flags,
        findings,
        filter,
        { none: 'no findings of sweeps', one: state === undefined ? 'finding' : 'open finding' },
        () => read({}),
      ),
    )
    sayUnknown(cli, findings)
    if (findings.length === 500) cli.warn('only the 500 that were seen last are shown; narrow it with --code, --backend or --project')
  })
}
