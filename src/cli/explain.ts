/** `leasehold explain ID`: the verdict, the facts that it rests on, what holds it back, and what would change it. */
import type { Command } from 'commander'
import { renderExplanation, type ExplanationNode } from '../model/explain.ts'
import type { ExplanationNodeView, ExplanationView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { segment } from './support/http.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { printable } from './support/text.ts'

/** What no row knows is looked at freshly, which may take a listing. */
const deadlineMs = 90_000

const ms = (time: string | null): number | null => (time === null ? null : Date.parse(time))
const nodeOf = (one: ExplanationNodeView): ExplanationNode => ({
  fact: one.fact,
  source: one.source,
  at: ms(one.at),
  children: one.children.map(nodeOf),
})

export const define = (command: Command, cli: Cli): void => {
  command.argument(
    '<id>',
    'any id, a slug, a ref, provider/location/native-id, project/backend, a project, a scope, or a native id that only one resource has',
  )
  withJson(withConnection(command))
  examples(command, 'explain brave-otter', 'explain simulated/sim-a/i-3f9c2a51', 'explain fd_0190f3c2a1b47d4c8e5f60718293a4b5 --json')
  act(command, async (flags, key = '') => {
    const { client } = await cli.session(flags)
    const { explanation } = await client.get<{ explanation: ExplanationView }>(`/v1/explain/${segment(key)}`, { deadlineMs })
    cli.show(flags, explanation, ({ subject, tree, heldBack, change, at }) =>
      renderExplanation(
        { subject, tree: nodeOf(tree), heldBack: heldBack.map(({ what, until }) => ({ what, until: ms(until) })), change },
        Date.parse(at),
      )
        .map((line) => `${printable(line)}\n`)
        .join(''),
    )
  })
}
