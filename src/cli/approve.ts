/** `leasehold approve HASH`: begins exactly one plan. */
import type { Command } from 'commander'
import { counted } from '../lib/counted.ts'
import { act, type Cli } from './support/cli.ts'
import type { Client } from './support/http.ts'
import { usageError } from './support/errors.ts'
import { segment } from './support/http.ts'
import { shortPlanId } from '../model/limits.ts'
import type { PlanView } from '../model/wire.ts'
import { examples, withConnection, withJson } from './support/options.ts'

/** @throws CliError exit 2 without a reason: what it deletes is asked about afterwards */
export const approvalReason = (value: unknown): string => {
  if (typeof value !== 'string' || value.trim() === '') throw usageError('say why: --reason TEXT')
  return value
}

export const approve = async (client: Client, hash: string, reason: string): Promise<PlanView> =>
  (await client.call<{ plan: PlanView }>('POST', `/v1/plans/${segment(hash)}/approve`, { body: { reason } })).body.plan

export const approvedText = (plan: PlanView): string =>
  `approved: ${counted(plan.removals.length, 'removal begins', 'removals begin')} on backend ${plan.project}/${plan.backend} with the sweep that was asked for; what changed since is dropped\nleasehold plans ${shortPlanId(plan.id)}   shows what became of each\n`

export const define = (command: Command, cli: Cli): void => {
  command
    .argument('<hash>', "the plan's id, or at least the first 12 characters of its hash")
    .option('--reason <text>', 'why (needed); kept in the audit')
  withJson(withConnection(command))
  examples(command, 'approve pl_3f9a1c0b7d22 --reason "the test cluster of May"')
  act(command, async (flags, hash = '') => {
    const reason = approvalReason(flags['reason'])
    const { client } = await cli.session(flags)
    const plan = await approve(client, hash, reason)
    cli.show(flags, plan, () => approvedText(plan))
    if (plan.warning !== undefined) cli.warn(plan.warning)
  })
}
