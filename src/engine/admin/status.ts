/** The coordinator about itself. For a token of one project the counts are that project's. */
import { sql } from 'kysely'
import { errorText } from '../../lib/redact.ts'
import { circuitOpenUntil } from '../../model/sweep.ts'
import type { CircuitView, StatusView } from '../../model/wire.ts'
import { listCircuits } from '../../store/circuits.ts'
import type { QueueTable } from '../../store/due.ts'
import { runningReplicas } from '../../store/replicas.ts'
import type { Session } from '../../store/store.ts'
import { requireFull, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { iso, isoOrNull } from '../views.ts'
import { visibleFreezes } from './freezes.ts'
import { visibleStops } from './installation.ts'
import { scopesOfProject } from './scopes.ts'

const countByState = async (session: Session, table: QueueTable, project: string | null): Promise<Record<string, number>> => {
  const where = project === null ? sql`` : sql`where project = ${project}`
  const { rows } = await sql<{
    state: string
    n: number
  }>`select state, count(*) as n from ${sql.table(table)} ${where} group by state order by state`.execute(session.db)
  return Object.fromEntries(rows.map((row) => [row.state, Number(row.n)]))
}

const countOpenFindings = async (session: Session, project: string | null): Promise<number> => {
  const row = await session.db
    .selectFrom('findings')
    .select((select) => select.fn.countAll().as('n'))
    .where('state', '=', 'open')
    .$if(project !== null, (query) => query.where('project', '=', project))
    .executeTakeFirst()
  return Number(row?.n ?? 0)
}

const countLocks = async (session: Session, now: number): Promise<Map<string, number>> => {
  const counts = new Map<string, number>()
  for (const table of ['leases', 'instances', 'removals'] as const) {
    const query = sql<{ owner: string; n: number }>`select lock_owner as owner, count(*) as n from ${sql.table(table)}
      where due_at is not null and lock_owner is not null and lock_until > ${now} group by lock_owner`
    for (const row of (await query.execute(session.db)).rows) counts.set(row.owner, (counts.get(row.owner) ?? 0) + Number(row.n))
  }
  return counts
}

/** Of one project: the accounts of its own backends. */
const visibleCircuits = async (session: Session, { project }: Actor, now: number): Promise<CircuitView[]> => {
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

/** What only the running process knows. */
export interface Running {
  version: string
  /** Why expiry stands still, or null. */
  expiryPaused: string | null
}

export const readStatus = async (context: EngineContext, actor: Actor, running: Running): Promise<StatusView> => {
  requireFull(actor)
  const { project } = actor
  const now = await context.store.now()
  const clockSkewMs = Math.round(Date.now() - now)
  return context.store.read(async (session) => {
    const locks = await countLocks(session, now)
    return {
      version: running.version,
      installation: context.installation.installation_id,
      database: session.dialect,
      now: iso(now),
      clockSkewMs,
      expiryPaused: running.expiryPaused,
      freezes: await visibleFreezes(session, actor),
      stops: await visibleStops(session, actor),
      circuits: await visibleCircuits(session, actor, now),
      replicas: (await runningReplicas(session)).map((row) => ({
        id: row.id,
        host: row.host,
        pid: row.pid,
        version: row.version,
        startedAt: iso(row.started_at),
        aliveAt: iso(row.alive_at),
        self: row.id === context.replicaId,
        locks: locks.get(row.id) ?? 0,
      })),
      counts: {
        leases: await countByState(session, 'leases', project),
        instances: await countByState(session, 'instances', project),
        removals: await countByState(session, 'removals', project),
        findings: await countOpenFindings(session, project),
      },
    }
  })
}

/** Null when the database answers, else why it does not. */
export const databaseTrouble = async (context: EngineContext): Promise<string | null> => {
  try {
    await context.store.read((session) => sql`select 1 as one`.execute(session.db))
    return null
  } catch (error) {
    return errorText(error)
  }
}
