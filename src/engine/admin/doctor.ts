/** What works and what does not, with a remedy each. Looks only. */
import { stat } from 'node:fs/promises'
import { counted } from '../../lib/counted.ts'
import { withDeadline } from '../../lib/deadline.ts'
import { briefDuration } from '../../lib/duration.ts'
import { errorText } from '../../lib/redact.ts'
import { stuckAfter } from '../../model/removal.ts'
import { comparePlaces, type Place } from '../../model/place.ts'
import { circuitText } from '../../model/sweep.ts'
import type { DoctorCheck, TroubleView } from '../../model/wire.ts'
import type { Provider } from '../../providers/contract.ts'
import { listBackends, type BackendRow } from '../../store/backends.ts'
import { readInstallation } from '../../store/installation.ts'
import { readPlace } from '../../store/place.ts'
import { runningReplicas } from '../../store/replicas.ts'
import type { Session } from '../../store/store.ts'
import { requireOperator, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { countTroubles, forPerson, openFindingsByCode, sweepModes, troubles, visibleCircuits } from './attention.ts'
import { checkDatabase } from './doctor-database.ts'
import { visibleFreezes } from './freezes.ts'
import { visibleStops } from './installation.ts'

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

const checkRemovals = async (session: Session, project: string | null): Promise<DoctorCheck[]> => {
  const { failing, gaveUp } = await countTroubles(session, project, 1)
  const stuck = (await countTroubles(session, project, stuckAfter)).failing
  const rows = await troubles(session, project)
  const said = (row: TroubleView | undefined): string =>
    row ? `${row.removalID} of ${row.name}: ${row.error ?? 'no reason recorded'}` : 'none of the newest'
  const failed = rows.find((row) => row.state !== 'gave-up')
  const tried: DoctorCheck =
    failing === 0
      ? ok('removals', 'none fails')
      : {
          name: 'removals',
          level: stuck > 0 ? 'error' : 'warning',
          message: `${counted(failing, 'removal fails', 'removals fail')} and ${failing === 1 ? 'is' : 'are'} tried on, ${stuck} of them failed ${stuckAfter} times or more in a row; the last: ${said(failed)}`,
          remedy: 'mend the cause; see "leasehold admin lease-audit" and "leasehold explain" of the removal',
        }
  if (gaveUp === 0) return [tried]
  return [
    tried,
    {
      name: 'given-up removals',
      level: 'error',
      message: `${counted(gaveUp, 'removal was', 'removals were')} given up, and what ${gaveUp === 1 ? 'it was' : 'they were'} to take back is not proved gone; the last: ${said(rows.find((row) => row.state === 'gave-up'))}`,
      remedy:
        'end it by hand, which is noticed; or mend the cause and "leasehold stop" its lease; see "leasehold instances --state terminating"',
    },
  ]
}

const checkFindings = async (session: Session, project: string | null): Promise<DoctorCheck> => {
  const byCode = await openFindingsByCode(session, project)
  const open = Object.values(byCode).reduce((sum, n) => sum + n, 0)
  if (open === 0) return ok('findings', 'none is open')
  const mine = forPerson(byCode)
  const rest = open - mine.reduce((sum, [, n]) => sum + n, 0)
  const listed = mine.map(([code, n]) => `${n} ${code}`).join(', ')
  return {
    name: 'findings',
    level: 'warning',
    message:
      mine.length === 0
        ? `${open} open, none of which needs a person`
        : `a person is needed for ${listed}${rest === 0 ? '' : `; ${rest} more open`}`,
    remedy: 'see "leasehold findings --state open", and "leasehold explain" of each',
  }
}

/** orphans R75a: whether anything found is taken back at all, where nobody would look for it. */
const checkSweeps = async (session: Session, context: EngineContext, actor: Actor): Promise<DoctorCheck[]> =>
  (await sweepModes(session, context, actor))
    .filter((one) => one.canList && one.backends > 0)
    .map((one) => {
      const every = briefDuration(one.intervalSeconds * 1000)
      const says = {
        report: 'what is found is reported, and not taken back',
        delete: `what has stood for ${briefDuration(one.graceSeconds * 1000)} is taken back`,
        off: 'nothing is looked for',
      }[one.mode]
      return ok(`${one.provider}: sweep mode`, `${one.mode} (${one.origin})${one.mode === 'off' ? '' : `, every ${every}`}: ${says}`)
    })

const checkCircuits = async (session: Session, actor: Actor, now: number): Promise<DoctorCheck[]> =>
  (await visibleCircuits(session, actor, now)).map((one) => ({
    name: `${one.provider}: listings`,
    level: one.openUntil === null ? 'warning' : 'error',
    message: `${one.scope}: ${circuitText(one)}`,
    remedy: 'mend the account\'s credentials or network; "leasehold sweep" tries at once',
  }))

const checkFreezes = async (session: Session, actor: Actor, runs: boolean): Promise<DoctorCheck> => {
  const frozen = await visibleFreezes(session, actor)
  // What a copy stops is told by its own check, and is no freeze of a person: that removals run would be untrue.
  if (frozen.length === 0)
    return ok(
      'freezes',
      runs ? 'removals run in every scope' : 'nobody froze anything; removals are stopped all the same, see installation',
    )
  const list = frozen.map((one) => `${one.scope === '*' ? 'every scope' : one.scope} (${one.reason})`).join(', ')
  return { name: 'freezes', level: 'warning', message: `removals are stopped in ${list}`, remedy: '"leasehold unfreeze" lets them go on' }
}

const checkInstallation = async (session: Session, actor: Actor): Promise<DoctorCheck> => {
  const name = 'installation'
  const stops = await visibleStops(session, actor)
  if (stops.length > 0)
    return {
      name,
      level: 'error',
      message: stops.map((one) => `removals are stopped in ${one.scope === '*' ? 'every scope' : one.scope}: ${one.why}`).join('; '),
      remedy: 'see "leasehold installation", and say which database is the true one: "leasehold installation adopt" or "fork"',
    }
  const row = await readInstallation(session)
  if (!row || row.place === null) return ok(name, 'no start has looked yet where this database lives')
  const verdict = comparePlaces(JSON.parse(row.place) as Place, await readPlace(session))
  if (verdict.kind === 'same') return ok(name, `this database lives where it lived, as ${row.installation_id} in epoch ${row.epoch}`)
  if (verdict.kind === 'elsewhere')
    return {
      name,
      level: 'error',
      message: verdict.why,
      remedy: 'within 10 s its coordinator stops all removals: see "leasehold installation"',
    }
  return {
    name,
    level: 'warning',
    message: `a copy of this database could not be told from it: ${verdict.why}`,
    remedy: 'grant it: "grant execute on function pg_control_system() to" the user of the coordinator',
  }
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
  const { backends, checks } = await store.read(async (session) => {
    const installation = await checkInstallation(session, actor)
    return {
      backends: await listBackends(session, actor.project),
      checks: [
        await checkClocks(session, now, context.replicaId),
        ...(await checkSweeps(session, context, actor)),
        ...(await checkCircuits(session, actor, now)),
        ...(await checkRemovals(session, actor.project)),
        await checkFindings(session, actor.project),
        await checkFreezes(session, actor, installation.level !== 'error'),
        installation,
      ],
    }
  })
  return [database.check, ...folder, ...(await checkProviders(context, backends)), ...checks]
}
