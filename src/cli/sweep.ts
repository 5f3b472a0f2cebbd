/** `leasehold sweep`: lists what is there now and judges it; in delete mode takes back what its quarantine has let go. */
import type { Command } from 'commander'
import type { SweepView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { exitCodes, usageError } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { describeSweep } from './support/sweep-text.ts'

/** The coordinator answers within 55 s, with what is known; a dry run answers when its listing has ended. */
const deadlineMs = 90_000
const dryDeadlineMs = 290_000

export const define = (command: Command, cli: Cli): void => {
  command
    .option('--backend <backend>', 'only this backend (default: every one of the project)')
    .option('--project <project>', 'the project (default: that of the token, else default)')
    .option('--dry-run', 'look, judge and plan, and write nothing')
    .option('--let-pass <backend>', 'sweep this backend, and let the implausible counts that it was last stopped by pass, once')
    .option('--reason <text>', 'why they may pass; kept in the audit')
  withJson(withConnection(command))
  examples(
    command,
    'sweep',
    'sweep --backend sim --dry-run',
    'sweep --project web --json',
    'sweep --let-pass sim --reason "a test cluster was torn down"',
  )
  act(command, async (flags) => {
    const letPass = flags['letPass'] as string | undefined
    if (letPass !== undefined && !flags['reason']) throw usageError('say why: --reason TEXT')
    if (letPass === undefined && flags['reason'] !== undefined) throw usageError('--reason goes with --let-pass')
    if (letPass !== undefined && flags['dryRun'] === true) throw usageError('--let-pass sweeps: leave out --dry-run')
    if (letPass !== undefined && flags['backend'] !== undefined && flags['backend'] !== letPass)
      throw usageError('--let-pass names the one backend that is swept: leave out --backend')
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
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
    cli.show(flags, sweeps, () => sweeps.map((one) => describeSweep(cli, one)).join('\n'))
    if (sweeps.some((one) => one.outcome === 'failed')) cli.exitCode = exitCodes.removalFailed
    else if (sweeps.some((one) => one.state === 'pending')) cli.exitCode = exitCodes.waitTimeout
  })
}
