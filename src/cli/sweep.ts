/** `leasehold sweep`: lists what is there now and judges it; in delete mode takes back what its quarantine has let go. */
import type { Command } from 'commander'
import type { PlanView, SweepView } from '../model/wire.ts'
import { approvalReason, approve, approvedText } from './approve.ts'
import { act, type Cli } from './support/cli.ts'
import { exitCodes, usageError } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { findingsForPerson, personText } from './support/person-text.ts'
import { describePlan } from './support/plan-text.ts'
import { describeSweep } from './support/sweep-text.ts'

/** The coordinator answers within 55 s, with what is known; a dry run answers when its listing has ended. */
const deadlineMs = 90_000
const dryDeadlineMs = 290_000

export const define = (command: Command, cli: Cli): void => {
  command
    .option('--backend <backend>', 'only this backend (default: every one of the project)')
    .option('--project <project>', 'the project (default: that of the token, else default)')
    .option('--dry-run', 'look, judge and plan, and write nothing')
    .option('--plan', 'write down what could be taken back now, with its proofs, and begin nothing')
    .option('--approve <hash>', 'approve that plan, and begin it')
    .option('--let-pass <backend>', 'sweep this backend, and let the implausible counts that it was last stopped by pass, once')
    .option('--reason <text>', 'why, with --approve or --let-pass; kept in the audit')
  withJson(withConnection(command))
  examples(
    command,
    'sweep',
    'sweep --backend sim --dry-run',
    'sweep --project web --json',
    'sweep --plan --backend sim',
    'sweep --approve pl_3f9a1c0b7d22 --reason "the test cluster of May"',
    'sweep --let-pass sim --reason "a test cluster was torn down"',
  )
  act(command, async (flags) => {
    const letPass = flags['letPass'] as string | undefined
    if (letPass !== undefined && !flags['reason']) throw usageError('say why: --reason TEXT')
    const hash = flags['approve'] as string | undefined
    if (letPass === undefined && hash === undefined && flags['reason'] !== undefined)
      throw usageError('--reason goes with --approve or --let-pass')
    const ways = ['dryRun', 'plan', 'approve', 'letPass'].filter((name) => flags[name] !== undefined && flags[name] !== false)
    if (ways.length > 1 && !(ways.includes('letPass') && ways.includes('dryRun')))
      throw usageError('--dry-run, --plan, --approve and --let-pass are ways of their own: give one of them')
    if (hash !== undefined && (flags['backend'] !== undefined || flags['project'] !== undefined))
      throw usageError('--approve names one plan, which has its backend: leave out --backend and --project')
    if (letPass !== undefined && flags['dryRun'] === true) throw usageError('--let-pass sweeps: leave out --dry-run')
    if (letPass !== undefined && flags['backend'] !== undefined && flags['backend'] !== letPass)
      throw usageError('--let-pass names the one backend that is swept: leave out --backend')
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    if (hash !== undefined) {
      const plan = await approve(client, hash, approvalReason(flags['reason']))
      cli.show(flags, plan, () => approvedText(plan))
      if (plan.warning !== undefined) cli.warn(plan.warning)
      return
    }
    if (flags['plan'] === true) {
      const body = {
        ...(flags['backend'] === undefined ? {} : { backend: flags['backend'] }),
        ...(project === undefined ? {} : { project }),
      }
      const { plans } = (await client.call<{ plans: PlanView[] }>('POST', '/v1/plans', { body, deadlineMs: dryDeadlineMs })).body
      cli.show(flags, plans, () =>
        plans.length === 0
          ? 'nothing could be taken back now: a plan is only of what sweeps have seen, and what its quarantine has let go ("leasehold sweep" begins that). "leasehold orphans" shows what is found, and what holds it back\n'
          : plans.map((plan) => describePlan(cli, plan)).join('\n'),
      )
      return
    }
    const dryRun = flags['dryRun'] === true
    const body = {
      ...(flags['backend'] === undefined ? {} : { backend: flags['backend'] }),
      ...(letPass === undefined ? {} : { backend: letPass, letPass: flags['reason'] }),
      ...(project === undefined ? {} : { project }),
      ...(dryRun ? { dryRun } : {}),
    }
    const { sweeps } = (
      await client.call<{ sweeps: SweepView[] }>('POST', '/v1/sweeps', { body, deadlineMs: dryRun ? dryDeadlineMs : deadlineMs })
    ).body
    // A sweep that is clean has nothing to do, and what it can't decide may stand all the same.
    const standing = flags['json'] === true ? [] : await findingsForPerson(client, sweeps)
    cli.show(flags, sweeps, () => `${sweeps.map((one) => describeSweep(cli, one)).join('\n')}${personText(cli, standing)}`)
    if (sweeps.some((one) => one.outcome === 'failed')) cli.exitCode = exitCodes.removalFailed
    else if (sweeps.some((one) => one.state === 'pending')) cli.exitCode = exitCodes.waitTimeout
  })
}
