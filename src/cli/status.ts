/** `leasehold status [ID]`: one lease, or the coordinator itself. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import { counted } from '../lib/counted.ts'
import { briefDuration } from '../lib/duration.ts'
import { circuitText } from '../model/sweep.ts'
import type { BudgetView, LeaseView, ReplicaView, StatusView, TroubleView } from '../model/wire.ts'
import { keepClaims, settleAll } from './support/claim-keeper.ts'
import { act, type Cli, type Flags } from './support/cli.ts'
import { CliError, exitCodes, usageError } from './support/errors.ts'
import { ApiError, NoAnswer } from './support/http.ts'
import { identifierOf, showLease } from './support/lease-actions.ts'
import { describeLease, hasEnded } from './support/lease-text.ts'
import { getLease, removalIsFinal } from './support/leases.ts'
import { examples, positiveDuration, withConnection, withJson } from './support/options.ts'
import type { Session } from './support/session.ts'
import { printable, relative } from './support/text.ts'

const defaultWaitMs = 300_000

export const define = (command: Command, cli: Cli): void => {
  command
    .argument('[id|slug]')
    .option('--id <id|slug>', 'the lease, in place of the argument')
    .option('--wait', 'until the lease is ready, or until nothing of an ended one is left')
    .option('--wait-timeout <duration>', 'wait at most so long (default 5m); exit code 5 then', positiveDuration)
  withJson(withConnection(command))
  examples(command, 'status', 'status brave-otter', 'status brave-otter --wait --wait-timeout 2m --json')
  act(command, async (flags, argument) => {
    if (argument !== undefined || flags['id'] !== undefined) return await ofLease(cli, flags, identifierOf(argument, flags['id']))
    if (flags['wait'] || flags['waitTimeout'] !== undefined) throw usageError('--wait waits for a lease: name it')
    const { client } = await cli.session(flags)
    const { status } = await client.get<{ status: StatusView }>('/v1/status')
    cli.show(flags, status, () => describeCoordinator(cli, client.url, status))
  })
}

const ofLease = async (cli: Cli, flags: Flags, identifier: string): Promise<void> => {
  if (!flags['wait']) {
    if (flags['waitTimeout'] !== undefined) throw usageError('--wait-timeout goes with --wait')
    return await showLease(cli, flags, identifier)
  }
  const session = await cli.session(flags)
  const keeper = keepClaims(cli, session)
  const first = await getLease(session.client, identifier, keeper.store)
  const limitMs = (flags['waitTimeout'] as number | undefined) ?? defaultWaitMs
  const { lease, settled } = await waitUntilSettled(session, first, limitMs)
  cli.show(flags, lease, () => describeLease(cli, lease))
  await settleAll(keeper, [lease])
  if (!settled)
    throw new CliError(
      `lease ${lease.id} is still ${hasEnded(lease) ? 'being removed' : lease.state} after ${limitMs / 1000} s`,
      exitCodes.waitTimeout,
    )
  if (lease.state === 'failed')
    throw new CliError(`lease ${lease.id} failed: ${lease.failureError ?? lease.failureCode ?? 'no reason given'}`)
}

/** Ready; or ended with nothing left, or with a box that is left on purpose. */
const isSettled = async ({ client }: Session, lease: LeaseView): Promise<boolean> => {
  if (lease.state === 'active') return lease.cleanup.state === 'none'
  return (lease.retainedAt !== null && lease.cleanup.state === 'none') || (await removalIsFinal(client, lease))
}

const waitUntilSettled = async (session: Session, first: LeaseView, limitMs: number): Promise<{ lease: LeaseView; settled: boolean }> => {
  const deadline = performance.now() + limitMs
  let lease = first
  for (let pauseMs = 100; ; pauseMs = Math.min(pauseMs * 1.5, 2000)) {
    if (await isSettled(session, lease)) return { lease, settled: true }
    const left = deadline - performance.now()
    if (left <= 0) return { lease, settled: false }
    await sleep(Math.min(pauseMs, left))
    try {
      lease = await getLease(session.client, lease.id)
    } catch (error) {
      if (!(error instanceof NoAnswer) && !(error instanceof ApiError && error.status >= 500)) throw error
    }
  }
}

const counts = (numbers: Record<string, number>): string =>
  Object.entries(numbers)
    .map(([state, count]) => `${count} ${state}`)
    .join(', ') || 'none'

const troubleText = (one: TroubleView, nowMs: number): string =>
  `${one.removalID} of ${one.name}${one.leaseID === null ? '' : ` (${one.leaseID})`}: ${one.error ?? 'no reason recorded'}${
    one.state === 'gave-up'
      ? '; nothing tries it any more'
      : `; failed ${counted(one.failures, 'time')} in a row${one.retryAt === null ? '' : `, next try ${relative(one.retryAt, nowMs)}`}`
  }`

const operationNames = { all: 'all calls', create: 'creates', read: 'reads and listings', delete: 'deletions' } as const

const budgetText = (one: BudgetView, nowMs: number): string => {
  const rate = one.callsPerSecond === null ? null : `${Number(one.callsPerSecond.toPrecision(2))} a second`
  const blocked = one.blockedUntil === null ? null : `none until ${one.blockedUntil}`
  const throttled = one.throttledAt === null ? null : `throttled ${relative(one.throttledAt, nowMs)}`
  return `${one.scope}, ${operationNames[one.operation]}: ${[rate, blocked, throttled].filter((part) => part !== null).join(', ')}`
}

const waitingText = ({ creates, removals, sweeps }: StatusView['waiting']): string | null =>
  [
    creates > 0 ? counted(creates, 'create') : null,
    removals > 0 ? counted(removals, 'removal') : null,
    sweeps > 0 ? counted(sweeps, 'sweep') : null,
  ]
    .filter((part) => part !== null)
    .join(', ') || null

/** case H8: whose clock is wrong judges nothing by it, and is shown. */
const clockText = (skewMs: number): string =>
  Math.abs(skewMs) < 1000 ? 'agrees' : `${skewMs > 0 ? '+' : '-'}${briefDuration(Math.abs(skewMs))}`

const locksText = ({ locksOf }: ReplicaView, nowMs: number): string =>
  locksOf.map(({ pipeline, count, oldestRenewedAt }) => `${count} ${pipeline} (${relative(oldestRenewedAt, nowMs)})`).join(', ') || 'none'

const describeCoordinator = (cli: Cli, url: string, status: StatusView): string => {
  const now = Date.parse(status.now)
  const head = cli.fields([
    ['coordinator', `${url}, version ${status.version}, installation ${status.installation}`],
    ['database', status.database],
    [
      'clock',
      `${status.now}${Math.abs(status.clockSkewMs) >= 1000 ? `, wall clock ${status.clockSkewMs > 0 ? 'ahead' : 'behind'} by ${Math.abs(status.clockSkewMs)} ms` : ''}`,
    ],
    ['expiry', status.expiryPaused === null ? null : `paused: ${status.expiryPaused}`],
    ['leases', counts(status.counts.leases)],
    ['instances', counts(status.counts.instances)],
    ['removals', counts(status.counts.removals)],
    ['open findings', status.counts.findings],
    [
      'needs a person',
      status.forPerson.length === 0
        ? null
        : `${status.forPerson.map((code) => `${status.findingsByCode[code] ?? 0} ${code}`).join(', ')}: leasehold findings --state open`,
    ],
    ...status.troubles.map((one): [string, string] => [one.state === 'gave-up' ? 'given up' : 'fails', printable(troubleText(one, now))]),
    ...status.sweeps
      .filter((one) => one.backends > 0)
      .map((one): [string, string] => [
        'sweeps',
        `${printable(one.provider)}: ${one.canList ? `${one.mode} (${printable(one.origin)}), every ${briefDuration(one.intervalSeconds * 1000)}` : 'none: it can not list'}`,
      ]),
    ['frozen', status.freezes.map(({ scope, reason }) => `${scope === '*' ? 'everything' : scope} (${reason})`).join(', ')],
    ...status.stops.map((one): [string, string] => [
      'stopped',
      `removals in ${one.scope === '*' ? 'every scope' : printable(one.scope)}: ${printable(one.why)}; see "leasehold installation"`,
    ]),
    ...status.budgets.map((one): [string, string] => ['rate', printable(budgetText(one, now))]),
    ['wait for a rate', waitingText(status.waiting)],
    ...status.circuits.map((one): [string, string] => ['circuit', printable(`${one.scope}: ${circuitText(one)}`)]),
  ])
  const replicas = cli.table(
    [
      { title: 'REPLICA', cell: (one) => `${one.id}${one.self ? ' *' : ''}` },
      { title: 'HOST', cell: (one) => one.host },
      { title: 'PID', cell: (one) => one.pid, align: 'right' },
      { title: 'VERSION', cell: (one) => one.version },
      { title: 'STARTED', cell: (one) => relative(one.startedAt, now) },
      { title: 'ALIVE', cell: (one) => relative(one.aliveAt, now) },
      { title: 'CLOCK', cell: (one) => clockText(one.clockSkewMs) },
      { title: 'LOCKS', cell: (one) => locksText(one, now) },
    ],
    status.replicas,
  )
  return `${head}\n${replicas}`
}
