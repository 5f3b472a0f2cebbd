/** `leasehold admin lease-audit|leases|release|delete`: for administrators, over every owner and project. */
import type { Command } from 'commander'
import type { AuditRow, LeaseView } from '../model/wire.ts'
import { leaseStates } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { CliError, exitCodes, usageError } from './support/errors.ts'
import { segment } from './support/http.ts'
import { defineList } from './support/lease-actions.ts'
import { describeLease } from './support/lease-text.ts'
import { examples, wholeNumber, withConnection, withJson } from './support/options.ts'
import { emptyText } from './support/report-options.ts'
import { relative, stateStyle } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  defineAudit(command.command('lease-audit'), cli)
  const leases = command
    .command('leases')
    .summary('list the leases of everybody')
    .description('Lists the leases of every owner, newest first.')
  defineList(leases, cli)
  examples(leases, 'admin leases --project default --limit 500')
  defineRelease(command.command('release'), cli)
  defineDelete(command.command('delete'), cli)
}

const audit = (flags: Record<string, unknown>, rows: readonly AuditRow[]): number | null =>
  flags['failOnLive'] ? rows.filter(({ cloudStatus }) => cloudStatus !== 'missing').length : null

const defineAudit = (command: Command, cli: Cli): void => {
  command
    .summary('leases that still owe a removal, checked at the provider')
    .description(
      'Lists the leases that still owe something, and what their provider says of them. Without --state every lease with a debt, live ones first.',
    )
    .option('--state <state>', `only this state: ${leaseStates.join(', ')}`)
    .option('--provider <provider>', 'only this provider')
    .option('--owner <owner>', 'only of this owner')
    .option('--project <project>', 'only of this project')
    .option('--limit <n>', 'at most so many (default 100)', wholeNumber(1, 500))
    .option('--fail-on-live', 'exit 1 if any resource is there, or could not be looked at')
  withJson(withConnection(command))
  examples(command, 'admin lease-audit', 'admin lease-audit --state expired --fail-on-live --json')
  act(command, async (flags) => {
    const state = flags['state'] as string | undefined
    if (state !== undefined && !leaseStates.some((one) => one === state))
      throw usageError(`--state must be one of ${leaseStates.join(', ')}`)
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    const filter = {
      state,
      provider: flags['provider'] as string | undefined,
      owner: flags['owner'] as string | undefined,
      project: project as string | undefined,
    }
    // Each row is looked up at its provider.
    const read = async (query: Record<string, string | number | undefined>): Promise<AuditRow[]> =>
      (await client.get<{ audits: AuditRow[] }>('/v1/admin/lease-audit', { query, deadlineMs: 300_000 })).audits
    const audits = await read({ ...filter, limit: flags['limit'] as number | undefined })
    const now = cli.io.now()
    cli.list(
      flags,
      audits,
      [
        { title: 'LEASE', cell: (row) => row.leaseID },
        { title: 'SLUG', cell: (row) => row.slug },
        { title: 'STATE', cell: (row) => row.state, style: (row) => stateStyle(row.state) },
        { title: 'RESOURCE', cell: (row) => row.cloudID },
        {
          title: 'AT PROVIDER',
          cell: (row) => (row.cloudState === null ? row.cloudStatus : `${row.cloudStatus} (${row.cloudState})`),
          style: (row) => (row.cloudStatus === 'missing' ? 'dim' : 'red'),
        },
        { title: 'DEBT', cell: (row) => row.debt.join(',') },
        { title: 'TRIES', cell: (row) => row.cleanupAttempts, align: 'right' },
        { title: 'RETRY', cell: (row) => relative(row.cleanupRetryAt, now) },
        { title: 'MESSAGE', cell: (row) => row.message ?? row.cleanupError },
      ],
      await emptyText(
        flags,
        audits,
        filter,
        { none: 'no lease owes anything', one: 'lease that owes something', many: 'leases that owe something' },
        (limit) => read({ limit }),
      ),
    )
    const live = audit(flags, audits)
    if (live !== null && live > 0) throw new CliError(`${live} of ${audits.length} resources are there or could not be looked at`)
  })
}

const defineRelease = (command: Command, cli: Cli): void => {
  command
    .summary("end anybody's lease")
    .description("Ends anybody's lease. Its box is removed unless it is kept; does not wait for that.")
    .argument('<id>')
    .option('--delete', 'remove the box, kept or not')
    .option('--no-delete', 'leave the box, kept or not')
  withJson(withConnection(command))
  examples(command, 'admin release lh_0123456789ab --delete')
  act(command, async (flags, id = '') => {
    const { client } = await cli.session(flags)
    const body = typeof flags['delete'] === 'boolean' ? { delete: flags['delete'] } : {}
    const { lease } = (await client.call<{ lease: LeaseView }>('POST', `/v1/admin/leases/${segment(id)}/release`, { body })).body
    cli.show(flags, lease, () => describeLease(cli, lease))
  })
}

const defineDelete = (command: Command, cli: Cli): void => {
  command
    .summary("end anybody's lease and remove its box now")
    .description("Ends anybody's lease and waits while its box is removed.")
    .argument('<id>')
    .option('--force', 'taken for the sake of scripts; nothing is asked either way')
  withJson(withConnection(command))
  examples(command, 'admin delete lh_0123456789ab')
  act(command, async (flags, id = '') => {
    const { client } = await cli.session(flags)
    const { lease } = (
      await client.call<{ lease: LeaseView }>('POST', `/v1/admin/leases/${segment(id)}/delete`, { body: {}, deadlineMs: 300_000 })
    ).body
    cli.show(flags, lease, () => describeLease(cli, lease))
    if (lease.cleanup.state === 'failed')
      throw new CliError(`the removal of ${lease.id} failed: ${lease.cleanup.error ?? 'no reason given'}`, exitCodes.removalFailed)
  })
}
