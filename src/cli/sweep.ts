/** `leasehold sweep`: lists what is there now and judges it; in delete mode takes back what its quarantine has let go. */
import type { Command } from 'commander'
import type { SweepView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { exitCodes } from './support/errors.ts'
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
  withJson(withConnection(command))
  examples(command, 'sweep', 'sweep --backend sim --dry-run', 'sweep --project web --json')
  act(command, async (flags) => {
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    const dryRun = flags['dryRun'] === true
    const body = {
      ...(flags['backend'] === undefined ? {} : { backend: flags['backend'] }),
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
