/** `leasehold sweeps [ID]`: the certificates of sweeps; one of them whole. */
import type { Command } from 'commander'
import { briefDuration } from '../lib/duration.ts'
import type { SweepView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { segment } from './support/http.ts'
import { examples, wholeNumber, withConnection, withJson } from './support/options.ts'
import { describeSweep, outcomeStyle } from './support/sweep-text.ts'
import { relative } from './support/text.ts'

const took = (one: SweepView): string =>
  one.startedAt === null || one.endedAt === null ? '' : briefDuration(Date.parse(one.endedAt) - Date.parse(one.startedAt))

const coverage = (one: SweepView): string =>
  one.cells.length === 0 ? '' : `${one.cells.filter((cell) => cell.state === 'complete').length}/${one.cells.length} complete`

const orphans = (one: SweepView): number =>
  Object.entries(one.verdicts)
    .filter(([reason]) => reason.startsWith('orphan.'))
    .reduce((sum, [, count]) => sum + count, 0)

export const define = (command: Command, cli: Cli): void => {
  command
    .argument('[id]')
    .option('--backend <backend>', 'only of this backend')
    .option('--project <project>', 'only of this project')
    .option('--limit <n>', 'at most so many (default 100)', wholeNumber(1, 500))
  withJson(withConnection(command))
  examples(command, 'sweeps', 'sweeps --backend sim --limit 5 --json', 'sweeps sw_0190f3c2a1b47d4c8e5f60718293a4b5')
  act(command, async (flags, id) => {
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    if (id !== undefined) {
      const { sweep } = await client.get<{ sweep: SweepView }>(`/v1/sweeps/${segment(id)}`)
      cli.show(flags, sweep, () => describeSweep(cli, sweep))
      return
    }
    const query = { backend: flags['backend'] as string, project: project as string, limit: flags['limit'] as number }
    const { sweeps } = await client.get<{ sweeps: SweepView[] }>('/v1/sweeps', { query })
    const now = cli.io.now()
    cli.list(
      flags,
      sweeps,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'BACKEND', cell: (one) => `${one.project}/${one.backend}` },
        { title: 'OUTCOME', cell: (one) => one.outcome, style: (one) => outcomeStyle(one.outcome) },
        { title: 'MODE', cell: (one) => one.mode },
        { title: 'STARTED', cell: (one) => relative(one.startedAt, now) },
        { title: 'TOOK', cell: took },
        { title: 'LISTED', cell: (one) => one.counts.listed, align: 'right' },
        { title: 'COVERAGE', cell: coverage },
        { title: 'ORPHANS', cell: orphans, align: 'right' },
        { title: 'BEGAN', cell: (one) => one.plan?.removals.length ?? 0, align: 'right' },
        {
          title: 'NOT CLEAN BECAUSE',
          cell: (one) =>
            [
              ...(one.error === null ? [] : [one.error]),
              ...one.why.filter((why) => one.error === null || why !== 'the listing failed'),
            ].join('; '),
        },
      ],
      'no sweeps',
    )
  })
}
