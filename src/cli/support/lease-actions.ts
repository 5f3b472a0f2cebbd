/** What `lease …` and the short commands do alike. */
import type { Command } from 'commander'
import type { LeaseView } from '../../model/wire.ts'
import { isLeaseId } from '../../model/ids.ts'
import { leaseStates } from '../../model/wire.ts'
import { beat } from './beat.ts'
import { keepClaims, settleAll } from './claim-keeper.ts'
import { act, type Cli } from './cli.ts'
import { createLease } from './create-lease.ts'
import { usageError } from './errors.ts'
import { catchInterrupts, Interrupted, signalStatus } from './interrupts.ts'
import { describeLease, isHistory, isLeftToOther, leaseColumns } from './lease-text.ts'
import { getLease } from './leases.ts'
import { alsoKnownAs, wholeNumber, wholeSeconds, withConnection, withJson } from './options.ts'
import { emptyText, reportQuery, sayUnknown, unknownColumn, withReportFilters } from './report-options.ts'
import { idleSeconds, leaseRequest, withLeaseOptions } from './request.ts'

/** `lease create`, `warmup`: prints the lease, and the token that may beat and release it. */
export const defineCreate = (command: Command, cli: Cli): void => {
  command
    .option('--id <lease id>', 'an id of your own (lh_ and 12 hex digits): the same create again answers the same lease')
    .option('--keep', '"leasehold lease release" leaves the box then; "leasehold stop" (alias release) removes it all the same')
  withJson(withConnection(withLeaseOptions(command)))
  act(command, async (flags) => {
    const fixedID = typeof flags['id'] === 'string' ? flags['id'] : null
    if (fixedID !== null && !isLeaseId(fixedID)) throw usageError(`--id: ${JSON.stringify(fixedID)} is not lh_ and 12 hex digits`)
    const session = await cli.session(flags)
    const keeper = keepClaims(cli, session)
    const interrupts = catchInterrupts()
    try {
      const request = leaseRequest(flags, session.settings)
      const { lease, leaseToken } = await createLease({
        cli,
        client: session.client,
        keeper,
        request,
        fixedID,
        signal: interrupts.abortOnNext(),
      })
      cli.show(flags, leaseToken === null ? lease : { ...lease, leaseToken }, () => describeLease(cli, lease))
      // Nothing runs in a simulated machine.
      const use = lease.provider === 'simulated' ? '' : `use it with "leasehold run --id ${lease.slug} -- COMMAND", `
      if (!flags.json) cli.say(`${use}end it with "leasehold stop ${lease.slug}"`)
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error
      cli.exitCode = signalStatus(error.signal)
    } finally {
      interrupts.close()
    }
  })
}

/** `list`, `lease list`, `admin leases`. */
export const defineList = (command: Command, cli: Cli): void => {
  command
    .option('--state <state>', `only this state: ${leaseStates.join(', ')}`)
    .option('--provider <provider>', 'only this provider')
    .option('--limit <n>', 'at most so many, the newest (default 100)', wholeNumber(1, 500))
    .option('--all', 'in the table also what has ended and left nothing behind; --json always has it')
  withReportFilters(command, 'created')
  withJson(withConnection(command))
  act(command, async (flags) => {
    const state = flags['state'] as string | undefined
    if (state !== undefined && !leaseStates.some((one) => one === state))
      throw usageError(`--state must be one of ${leaseStates.join(', ')}`)
    const { project: _, ...rest } = flags
    // A project here narrows the list; the setting of that name is for new leases and must not hide any.
    const session = await cli.session(rest)
    const filter = { ...reportQuery(flags), state, provider: flags['provider'] as string | undefined }
    const read = async (query: Record<string, string | number | undefined>): Promise<LeaseView[]> =>
      (await session.client.get<{ leases: LeaseView[] }>('/v1/leases', { query })).leases
    const fresh = (rows: readonly LeaseView[]): LeaseView[] =>
      flags.json || flags['all'] || state ? [...rows] : rows.filter((lease) => !isHistory(lease))
    const leases = await read({ ...filter, limit: flags['limit'] as number | undefined })
    const shown = fresh(leases)
    const hidden = leases.length - shown.length
    const ended = leases.filter((lease) => !shown.includes(lease))
    const others = ended.filter(isLeftToOther).length
    const notShown = [
      ...(hidden > others ? [`${hidden - others} ended and gone`] : []),
      ...(others > 0 ? [`${others} left to another installation by a fork`] : []),
    ]
    cli.list(
      flags,
      shown,
      [...leaseColumns(cli.io.now()), ...unknownColumn(shown)],
      await emptyText(
        flags,
        shown,
        filter,
        { none: hidden > 0 ? 'no leases' : 'no leases; create one with "leasehold warmup" or "leasehold run -- COMMAND"', one: 'lease' },
        async (limit) => fresh(await read({ limit })),
      ),
    )
    sayUnknown(cli, shown)
    if (hidden > 0) cli.say(`${notShown.join(', ')}, not shown (--all)`)
    await settleAll(keepClaims(cli, session), leases)
  })
}

/** `heartbeat`, `touch`, `lease heartbeat`. */
export const defineHeartbeat = (command: Command, cli: Cli): void => {
  command
    .argument('<id|slug>')
    .option('--idle <duration>', 'a new idle time from here on', wholeSeconds)
    .option('--provider <provider>', 'refuse unless the lease is of this provider')
  alsoKnownAs(command, '--idle-timeout <duration>', wholeSeconds)
  withJson(withConnection(command))
  act(command, async (flags, identifier = '') => {
    const { client } = await cli.session(flags)
    const idle = idleSeconds(flags)
    const id = isLeaseId(identifier) ? identifier : (await getLease(client, identifier)).id
    const lease = await beat(client, id, {
      ...(idle === undefined ? {} : { idleTimeoutSeconds: idle }),
      ...(typeof flags['provider'] === 'string' ? { expectedProvider: flags['provider'] } : {}),
    })
    if (lease.accessWarning !== null) cli.warn(lease.accessWarning)
    cli.show(flags, lease, () => `${lease.id} (${lease.slug}) is in use until ${lease.expiresAt}, if nobody beats again\n`)
  })
}

/** The lease of one command line, by argument or `--id`; exit 2 for none or two. */
export const identifierOf = (argument: string | undefined, option: unknown): string => {
  if (argument !== undefined && option !== undefined && argument !== option) throw usageError('name one lease, by its id or slug')
  const identifier = argument ?? option
  if (typeof identifier !== 'string' || identifier === '') throw usageError('name the lease, by its id or slug')
  return identifier
}

/** `lease get`, `status ID`. */
export const showLease = async (cli: Cli, flags: Parameters<Cli['session']>[0], identifier: string): Promise<void> => {
  const session = await cli.session(flags)
  const keeper = keepClaims(cli, session)
  const lease = await getLease(session.client, identifier, keeper.store)
  cli.show(flags, lease, () => describeLease(cli, lease))
  await settleAll(keeper, [lease])
}
