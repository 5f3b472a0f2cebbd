/** What may need a person, read for `status` and `doctor` alike: how sweeps run, which removals fail or were given up, which findings stand, which accounts wait. */
import { findingCodes, needsPerson, type FindingCode } from '../../model/codes.ts'
import { circuitOpenUntil } from '../../model/sweep.ts'
import type { CircuitView, SweepModeView, TroubleView } from '../../model/wire.ts'
import { listBackends } from '../../store/backends.ts'
import { listCircuits } from '../../store/circuits.ts'
import { readInstallation } from '../../store/installation.ts'
import type { Session } from '../../store/store.ts'
import type { Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { iso, isoOrNull } from '../views.ts'
import { scopesOfProject } from './scopes.ts'

/** Told one by one; the counts are of all. */
export const mostTroubles = 20

/** Of each provider of this coordinator, and of those that only backends name (orphans R75a). */
export const sweepModes = async (session: Session, context: EngineContext, { project }: Actor): Promise<SweepModeView[]> => {
  const backends = (await listBackends(session, project)).filter((row) => row.deleted_at === null)
  const names = new Set([...context.providers.keys(), ...backends.map((row) => row.provider)])
  return [...names].toSorted().map((provider) => {
    const settings = context.sweepSettings(provider)
    return {
      provider,
      mode: settings.mode.value,
      origin: settings.mode.origin,
      intervalSeconds: settings.intervalMs.value / 1000,
      graceSeconds: settings.graceMs.value / 1000,
      canList: context.providers.get(provider)?.list !== undefined,
      backends: backends.filter((row) => row.provider === provider).length,
    }
  })
}

/** What a fork left to another installation is nobody's trouble here. */
export const ownSince = async (session: Session): Promise<number> => (await readInstallation(session))?.held_since ?? 0

/** Removals that failed and are tried on, and those that were given up: newest failure first. */
export const troubles = async (session: Session, project: string | null): Promise<TroubleView[]> => {
  const rows = await session.db
    .selectFrom('removals')
    .selectAll()
    .where((where) =>
      where.or([where('state', '=', 'gave-up'), where.and([where('state', 'not in', ['gone', 'closed']), where('failures', '>', 0)])]),
    )
    .where('opened_at', '>=', await ownSince(session))
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .orderBy('failed_at', 'desc')
    .orderBy('id')
    .limit(mostTroubles)
    .execute()
  return rows.map((row) => ({
    removalID: row.id,
    name: row.name,
    project: row.project,
    backend: row.backend,
    leaseID: row.lease_id,
    state: row.state,
    failures: row.failures,
    error: row.error,
    retryAt: isoOrNull(row.state === 'gave-up' ? null : row.retry_at),
  }))
}

/** How many failed `failures` times or more in a row and are tried on, and how many were given up. */
export const countTroubles = async (
  session: Session,
  project: string | null,
  failures: number,
): Promise<{ failing: number; gaveUp: number }> => {
  const since = await ownSince(session)
  const count = async (condition: 'failing' | 'gave-up'): Promise<number> => {
    const row = await session.db
      .selectFrom('removals')
      .select((select) => select.fn.countAll().as('n'))
      .where('opened_at', '>=', since)
      .$if(condition === 'gave-up', (query) => query.where('state', '=', 'gave-up'))
      .$if(condition === 'failing', (query) =>
        query.where('state', 'not in', ['gone', 'gave-up', 'closed']).where('failures', '>=', failures),
      )
      .$if(project !== null, (query) => query.where('project', '=', project as string))
      .executeTakeFirst()
    return Number(row?.n ?? 0)
  }
  return { failing: await count('failing'), gaveUp: await count('gave-up') }
}

/** Open ones, by code. */
export const openFindingsByCode = async (session: Session, project: string | null): Promise<Record<string, number>> => {
  const rows = await session.db
    .selectFrom('findings')
    .select(['code', (select) => select.fn.countAll().as('n')])
    .where('state', '=', 'open')
    .$if(project !== null, (query) => query.where('project', '=', project))
    .groupBy('code')
    .orderBy('code')
    .execute()
  return Object.fromEntries(rows.map((row) => [row.code, Number(row.n)]))
}

/** Of these codes nothing gets better by itself. */
export const forPerson = (byCode: Readonly<Record<string, number>>): [FindingCode, number][] =>
  (Object.keys(findingCodes) as FindingCode[]).flatMap((code) =>
    needsPerson.has(code) && (byCode[code] ?? 0) > 0 ? [[code, byCode[code] ?? 0] as [FindingCode, number]] : [],
  )

/** Of one project: the accounts of its own backends. */
export const visibleCircuits = async (session: Session, { project }: Actor, now: number): Promise<CircuitView[]> => {
  const own = project === null ? null : await scopesOfProject(session, project)
  return (await listCircuits(session))
    .filter((row) => own === null || own.has(row.scope))
    .map((row) => ({
      provider: row.provider,
      scope: row.scope,
      failures: row.failures,
      failedAt: iso(row.failed_at),
      openUntil: isoOrNull(circuitOpenUntil({ openUntil: row.open_until }, now)),
      error: row.error,
    }))
}
