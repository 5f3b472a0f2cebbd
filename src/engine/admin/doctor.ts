/** What works and what does not, with a remedy each. Looks only. */
import { stat } from 'node:fs/promises'
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { stuckAfter } from '../../model/removal.ts'
import type { DoctorCheck } from '../../model/wire.ts'
import type { Provider } from '../../providers/contract.ts'
import { listBackends, type BackendRow } from '../../store/backends.ts'
import { runningReplicas } from '../../store/replicas.ts'
import type { Session } from '../../store/store.ts'
import { requireOperator, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { checkDatabase } from './doctor-database.ts'
import { visibleFreezes } from './freezes.ts'

const ok = (name: string, message: string): DoctorCheck => ({ name, level: 'ok', message, remedy: null })
const deadlineMs = 20_000
const skewWarningMs = 1_000
const skewErrorMs = 60_000

const checkFolder = async (folder: string): Promise<DoctorCheck> => {
  const name = 'coordinator data folder'
  try {
    const { mode } = await stat(folder)
    if ((mode & 0o077) === 0) return ok(name, `${folder} is readable by its owner only`)
    return { name, level: 'warning', message: `others on this machine may look into ${folder}`, remedy: `chmod 700 ${folder}` }
  } catch (error) {
    return {
      name,
      level: 'error',
      message: `${folder} can't be looked at: ${errorText(error)}`,
      remedy: 'give it to the user that runs the coordinator, or set LEASEHOLD_DATA',
    }
  }
}

/** case D9: what it made and we lost the record of is found by nobody. */
const cannotProve = (provider: Provider): DoctorCheck[] =>
  provider.list === undefined
    ? [
        {
          name: `${provider.name}: sweeps`,
          level: 'warning',
          message: `provider "${provider.name}" can create and not list: no absence is ever proved there, and what is lost is never found`,
          remedy: 'look into the account yourself from time to time',
        },
      ]
    : []

const checkProvider = async (context: EngineContext, backends: readonly BackendRow[]): Promise<DoctorCheck[]> => {
  const [first] = backends as [BackendRow]
  const names = backends.map((row) => `${row.project}/${row.name}`).join(', ')
  const failed = (message: string, remedy: string): DoctorCheck[] => [
    { name: `${first.provider}: backend`, level: 'error', message: `backend ${names}: ${message}`, remedy },
  ]
  const provider = context.providers.get(first.provider)
  if (!provider) return failed(`this coordinator has no provider "${first.provider}"`, 'run a version that has it')
  try {
    const config = JSON.parse(first.config) as Record<string, unknown>
    const checks = await withDeadline(`the doctor of ${first.provider}`, deadlineMs, new AbortController().signal, (signal) =>
      provider.doctor(config, { signal }),
    )
    return [...checks, ...cannotProve(provider)].map((check) => ({ ...check, message: `backend ${names}: ${check.message}` }))
  } catch (error) {
    return failed(errorText(error), 'see the coordinator log, and check the configuration of the backend')
  }
}

/** What the provider makes of it: `{}` and the defaults written out are the same. A configuration that it refuses stands for itself. */
const meaningOf = (context: EngineContext, { provider, config }: BackendRow): string => {
  try {
    const parsed = context.providers.get(provider)?.parseConfig(JSON.parse(config)) ?? {}
    return JSON.stringify(Object.entries(parsed).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  } catch {
    return config
  }
}

/** Backends that are configured alike are looked at once; deleted ones take no new lease, and nobody would mend them. */
const checkProviders = async (context: EngineContext, all: readonly BackendRow[]): Promise<DoctorCheck[]> => {
  const backends = all.filter((row) => row.deleted_at === null)
  const alike = Map.groupBy(backends, (row) => `${row.provider} ${meaningOf(context, row)}`)
  return (await Promise.all([...alike.values()].map((rows) => checkProvider(context, rows)))).flat()
}

const checkClocks = async (session: Session, now: number, self: string): Promise<DoctorCheck> => {
  const name = 'clocks'
  const skews = (await runningReplicas(session)).map((row) => ({
    who: row.id === self ? 'this process' : `replica ${row.id} on ${row.host}`,
    ms: row.id === self ? Date.now() - now : row.skew_ms,
  }))
  const worst = skews.toSorted((a, b) => Math.abs(b.ms) - Math.abs(a.ms))[0] ?? { who: 'this process', ms: Date.now() - now }
  const ms = Math.round(Math.abs(worst.ms))
  if (ms < skewWarningMs) return ok(name, `the clocks agree within ${ms} ms`)
  const level = ms < skewErrorMs ? 'warning' : 'error'
  return {
    name,
    level,
    message: `the wall clock of ${worst.who} is ${ms} ms ${worst.ms > 0 ? 'ahead of' : 'behind'} the one that deadlines go by`,
    remedy: 'run a time service on every machine',
  }
}

const checkRemovals = async (session: Session, project: string | null): Promise<DoctorCheck> => {
  const name = 'removals'
  const stuck = await session.db
    .selectFrom('removals')
    .select(['id', 'error'])
    .where('state', 'not in', ['gone', 'gave-up', 'closed'])
    .where('failures', '>=', stuckAfter)
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .orderBy('failed_at', 'desc')
    .limit(100)
    .execute()
  const [latest] = stuck
  if (!latest) return ok(name, 'none is stuck')
  const number = stuck.length === 100 ? '100 or more' : String(stuck.length)
  return {
    name,
    level: 'error',
    message: `${number} failed ${stuckAfter} times or more in a row, ${latest.id} last: ${latest.error ?? 'no reason recorded'}`,
    remedy: 'see "leasehold admin lease-audit"; they are tried on',
  }
}

const checkFindings = async (session: Session, project: string | null): Promise<DoctorCheck> => {
  const row = await session.db
    .selectFrom('findings')
    .select((select) => select.fn.countAll().as('n'))
    .where('state', '=', 'open')
    .$if(project !== null, (query) => query.where('project', '=', project))
    .executeTakeFirst()
  const open = Number(row?.n ?? 0)
  if (open === 0) return ok('findings', 'none is open')
  return { name: 'findings', level: 'warning', message: `${open} open`, remedy: 'see "leasehold findings --state open"' }
}

const checkFreezes = async (session: Session, actor: Actor): Promise<DoctorCheck> => {
  const frozen = await visibleFreezes(session, actor)
  if (frozen.length === 0) return ok('freezes', 'removals run in every scope')
  const list = frozen.map((one) => `${one.scope === '*' ? 'every scope' : one.scope} (${one.reason})`).join(', ')
  return { name: 'freezes', level: 'warning', message: `removals are stopped in ${list}`, remedy: '"leasehold unfreeze" lets them go on' }
}

/**
 * For operators; one of a single project is told of that project's backends and removals.
 * @param dataFolder looked at if given
 * @throws LeaseholdError forbidden
 */
export const runDoctor = async (context: EngineContext, actor: Actor, dataFolder: string | null): Promise<DoctorCheck[]> => {
  requireOperator(actor)
  const { store } = context
  const database = await checkDatabase(store)
  const folder = dataFolder === null ? [] : [await checkFolder(dataFolder)]
  if (!database.answers) return [database.check, ...folder]
  const now = await store.now()
  const { backends, checks } = await store.read(async (session) => ({
    backends: await listBackends(session, actor.project),
    checks: [
      await checkClocks(session, now, context.replicaId),
      await checkRemovals(session, actor.project),
      await checkFindings(session, actor.project),
      await checkFreezes(session, actor),
    ],
  }))
  return [database.check, ...folder, ...(await checkProviders(context, backends)), ...checks]
}
