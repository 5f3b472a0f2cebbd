/** `leasehold plans [ID]`: what waits for a person's word; one of them whole. */
import type { Command } from 'commander'
import { shortPlanId } from '../model/limits.ts'
import type { PlanView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { segment } from './support/http.ts'
import { examples, wholeNumber, withConnection, withJson } from './support/options.ts'
import { describePlan } from './support/plan-text.ts'
import { emptyText } from './support/report-options.ts'
import { relative } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  command
    .argument('[id]', 'the id, or the first characters of its hash')
    .option('--backend <backend>', 'only of this backend')
    .option('--project <project>', 'only of this project')
    .option('--state <state>', 'only waiting, approved, begun or dropped')
    .option('--limit <n>', 'at most so many (default 100)', wholeNumber(1, 500))
  withJson(withConnection(command))
  examples(command, 'plans', 'plans --state waiting', 'plans pl_3f9a1c0b7d22', 'plans pl_3f9a1c0b7d22 --json')
  act(command, async (flags, id) => {
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    if (id !== undefined) {
      const { plan } = await client.get<{ plan: PlanView }>(`/v1/plans/${segment(id)}`)
      cli.show(flags, plan, () => describePlan(cli, plan))
      return
    }
    const filter = {
      backend: flags['backend'] as string | undefined,
      project: project as string | undefined,
      state: flags['state'] as string | undefined,
    }
    const read = async (query: Record<string, string | number | undefined>): Promise<PlanView[]> =>
      (await client.get<{ plans: PlanView[] }>('/v1/plans', { query })).plans
    const plans = await read({ ...filter, limit: flags['limit'] as number | undefined })
    const now = cli.io.now()
    cli.list(
      flags,
      plans,
      [
        { title: 'ID', cell: (one) => shortPlanId(one.id) },
        { title: 'STATE', cell: (one) => one.state },
        { title: 'BACKEND', cell: (one) => `${one.project}/${one.backend}` },
        { title: 'REMOVALS', cell: (one) => one.removals.length, align: 'right' },
        { title: 'DROPPED', cell: (one) => one.dropped.length, align: 'right' },
        { title: 'MADE BY', cell: (one) => one.madeBy },
        { title: 'SEEN', cell: (one) => relative(one.seenAt, now) },
        { title: 'APPROVED BY', cell: (one) => one.approvedBy ?? '' },
        { title: 'WHY', cell: (one) => one.why ?? 'asked for' },
      ],
      await emptyText(flags, plans, filter, { none: 'no plans', one: 'plan' }, (limit) => read({ limit })),
    )
  })
}
