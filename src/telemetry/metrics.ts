/**
 * The metrics of a coordinator, as Prometheus reads them. What this process did is counted as it happens; the state that all replicas share is read from the
 * database when somebody asks, and is the same on each of them. Passed in where it is needed; the core never imports it.
 */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { StatusView } from '../model/wire.ts'

export interface Metrics {
  /** One call to a provider has ended. @param outcome its answer's kind, or `error` */
  called(provider: string, operation: string, outcome: string, seconds: number): void
  /** What was given up is proved gone (case E3). @param seconds since it was given up */
  reclaimed(provider: string, cause: string, seconds: number): void
  /** @param whole with what this process counts, which is of all projects */
  render(status: StatusView, whole: boolean): Promise<string>
  contentType: string
}

const callBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300]
const reclaimBuckets = [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 21_600, 86_400]

const seconds = (ms: number): number => ms / 1000

/** The shared state, in a registry of its own: what is not there any more leaves no line behind. */
const stateOf = (status: StatusView): Registry => {
  const registry = new Registry()
  const gauge = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    rows: readonly (readonly [Record<L, string>, number])[],
  ) => {
    const one = new Gauge({ name: `leasehold_${name}`, help, labelNames, registers: [registry] })
    for (const [labels, value] of rows) one.set(labels, value)
  }
  const single = (name: string, help: string, value: number) => gauge(name, help, [], [[{}, value]])
  const by = <L extends string>(label: L, counts: Record<string, number>) =>
    Object.entries(counts).map(([key, n]) => [{ [label]: key } as Record<L, string>, n] as const)

  const { version, installation, database } = status
  gauge('info', 'What runs.', ['version', 'installation', 'database'], [[{ version, installation, database }, 1]])
  gauge('leases', 'Leases by state.', ['state'], by('state', status.counts.leases))
  gauge('instances', 'Instances by state.', ['state'], by('state', status.counts.instances))
  gauge('removals', 'Removals by state.', ['state'], by('state', status.counts.removals))
  gauge('findings', 'Open findings by code.', ['code'], by('code', status.findingsByCode))
  gauge('waiting', 'What waits for the budget of its account.', ['kind'], by('kind', status.waiting))
  single('expiry_paused', 'Whether expiry stands still, because the clock is doubtful.', status.expiryPaused === null ? 0 : 1)
  single('freezes', 'Stop switches that are on.', status.freezes.length)
  single('stops', 'Scopes in which nothing is removed because this database may be a copy.', status.stops.length)
  gauge(
    'circuit_failures',
    'Failed listings in a row of accounts that are left alone for a while.',
    ['provider', 'scope'],
    status.circuits.map(({ provider, scope, failures }) => [{ provider, scope }, failures]),
  )

  const budgets = status.budgets.map(({ provider, scope, operation, ...rest }) => ({ labels: { provider, scope, operation }, ...rest }))
  const ofBudget = ['provider', 'scope', 'operation'] as const
  const limited = budgets.flatMap((one) => (one.callsPerSecond === null ? [] : [[one.labels, one.callsPerSecond] as const]))
  const left = budgets.map((one) => [one.labels, one.left] as const)
  const blocked = budgets.map(
    (one) =>
      [one.labels, one.blockedUntil === null ? 0 : seconds(Math.max(0, Date.parse(one.blockedUntil) - Date.parse(status.now)))] as const,
  )
  gauge('budget_calls_per_second', 'The rate of calls that an account allows now.', ofBudget, limited)
  gauge('budget_calls_left', 'Calls that may be made at once.', ofBudget, left)
  gauge('budget_blocked_seconds', 'For how long nothing is called, because the provider said so.', ofBudget, blocked)
  const throttles = new Counter({
    name: 'leasehold_budget_throttles_total',
    help: 'How often the provider refused a call for its rate.',
    labelNames: ofBudget,
    registers: [registry],
  })
  for (const one of budgets) throttles.inc(one.labels, one.throttles)

  const replica = (one: StatusView['replicas'][number]) => ({ replica: one.id, host: one.host })
  gauge(
    'replica_clock_skew_seconds',
    "A replica's wall clock minus the database's clock, by which everything is judged (case H8).",
    ['replica', 'host'],
    status.replicas.map((one) => [replica(one), seconds(one.clockSkewMs)]),
  )
  gauge(
    'replica_locks',
    'Rows that a replica works on.',
    ['replica', 'host', 'pipeline'],
    status.replicas.flatMap((one) => one.locksOf.map(({ pipeline, count }) => [{ ...replica(one), pipeline }, count] as const)),
  )
  return registry
}

/** @param ofProcess its memory, CPU time and event loop too; for one that has the process to itself */
export const createMetrics = ({ ofProcess }: { ofProcess: boolean }): Metrics => {
  const own = new Registry()
  if (ofProcess) collectDefaultMetrics({ register: own })
  const calls = new Histogram({
    name: 'leasehold_provider_call_seconds',
    help: 'Calls of this replica to providers, by what came of them.',
    labelNames: ['provider', 'operation', 'outcome'],
    buckets: callBuckets,
    registers: [own],
  })
  const reclaims = new Histogram({
    name: 'leasehold_reclaim_seconds',
    help: 'From being given up to being proved gone, of what this replica removed.',
    labelNames: ['provider', 'cause'],
    buckets: reclaimBuckets,
    registers: [own],
  })
  return {
    called: (provider, operation, outcome, took) => calls.observe({ provider, operation, outcome }, took),
    reclaimed: (provider, cause, took) => reclaims.observe({ provider, cause }, took),
    async render(status, whole) {
      const state = stateOf(status)
      return (whole ? Registry.merge([own, state]) : state).metrics()
    },
    contentType: own.contentType,
  }
}
