/** `leasehold removals`: what is being taken back and is not proved gone yet; what is stuck comes first. */
import type { Command } from 'commander'
import type { RemovalView } from '../model/wire-removals.ts'
import { act, type Cli } from './support/cli.ts'
import { examples, wholeNumber, withConnection, withJson } from './support/options.ts'
import { emptyText } from './support/report-options.ts'
import { relative, stateStyle } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  command
    .option('--stuck', 'only those that go no further without a person')
    .option('--project <project>', 'only of this project')
    .option('--limit <n>', 'at most so many (default 100)', wholeNumber(1, 500))
  withJson(withConnection(command))
  examples(command, 'removals', 'removals --stuck --json')
  act(command, async (flags) => {
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    const filter = { project: project as string | undefined, stuck: flags['stuck'] === true ? true : undefined }
    const read = async (query: Record<string, string | number | boolean | undefined>): Promise<RemovalView[]> =>
      (await client.get<{ removals: RemovalView[] }>('/v1/removals', { query })).removals
    const removals = await read({ ...filter, limit: flags['limit'] as number | undefined })
    const now = cli.io.now()
    cli.list(
      flags,
      removals,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'STATE', cell: (one) => `${one.state}${one.stuck ? ' (stuck)' : ''}`, style: (one) => stateStyle(one.state) },
        { title: 'NAME', cell: (one) => one.name },
        { title: 'OWNER', cell: (one) => one.owner },
        { title: 'CAUSE', cell: (one) => one.cause },
        { title: 'SINCE', cell: (one) => relative(one.openedAt, now) },
        {
          title: 'LEFT',
          cell: (one) => (one.members.length === 0 ? '-' : one.members.filter((member) => member.state !== 'gone').length),
          align: 'right',
        },
        { title: 'REASON', cell: (one) => one.reason },
        { title: 'NEXT STEP', cell: (one) => one.nextStep },
      ],
      await emptyText(flags, removals, filter, { none: 'no open removals', one: 'open removal' }, (limit) => read({ limit })),
    )
  })
}
