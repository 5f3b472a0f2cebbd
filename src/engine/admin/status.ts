/** The coordinator about itself. For a token of one project the counts are that project's. */
import { sql } from 'kysely'
import { errorText } from '../../lib/redact.ts'
import type { StatusView } from '../../model/wire.ts'
import type { QueueTable } from '../../store/due.ts'
import { runningReplicas } from '../../store/replicas.ts'
import type { Session } from '../../store/store.ts'
import { requireFull, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { lockMs } from '../pipeline.ts'
import { iso } from '../views.ts'
import { forPerson, openFindingsByCode, sweepModes, troubles, visibleCircuits } from './attention.ts'
import { countWaiting, visibleBudgets } from './budgets.ts'
import { visibleFreezes } from './freezes.ts'
import { visibleStops } from './installation.ts'

const countByState = async (session: Session, table: QueueTable, project: string | null): Promise<Record<string, number>> => {
  const where = project === null ? sql`` : sql`where project = ${project}`
  const { rows } = await sql<{
    state: string
    n: number
  }>`select state, count(*) as n from ${sql.table(table)} ${where} group by state order by state`.execute(session.db)
  return Object.fromEntries(rows.map((row) => [row.state, Number(row.n)]))
}

const queues = { provision: 'instances', expire: 'leases', remove: 'removals', sweep: 'cleanups' } as const

type Locks = StatusView['replicas'][number]['locksOf']

/** By replica. Only rows in work are read, by the index of due times. A lock stands 30 s from its last renewal, so this is when it was last renewed. */
const readLocks = async (session: Session, now: number): Promise<Map<string, Locks>> => {
  const locks = new Map<string, Locks>()
  for (const [pipeline, table] of Object.entries(queues) as [keyof typeof queues, QueueTable][]) {
    const query = sql<{ owner: string; n: number; oldest: number }>`select lock_owner as owner, count(*) as n, min(lock_until) as oldest
      from ${sql.table(table)} where due_at > ${now} and due_at <= ${now + lockMs} and lock_owner is not null and lock_until > ${now} group by lock_owner`
    for (const row of (await query.execute(session.db)).rows) {
      const mine = locks.get(row.owner) ?? []
      locks.set(row.owner, [...mine, { pipeline, count: Number(row.n), oldestRenewedAt: iso(Number(row.oldest) - lockMs) }])
    }
  }
  return locks
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
    const locks = await readLocks(session, now)
    const findingsByCode = await openFindingsByCode(session, project)
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
      budgets: await visibleBudgets(session, context, actor, now),
      waiting: await countWaiting(session, project),
      sweeps: await sweepModes(session, context, actor),
      troubles: await troubles(session, project),
      findingsByCode,
      forPerson: forPerson(findingsByCode).map(([code]) => code),
      replicas: (await runningReplicas(session)).map((row) => ({
        id: row.id,
        host: row.host,
        pid: row.pid,
        version: row.version,
        startedAt: iso(row.started_at),
        aliveAt: iso(row.alive_at),
        self: row.id === context.replicaId,
        clockSkewMs: Math.round(row.id === context.replicaId ? clockSkewMs : row.skew_ms),
        locks: (locks.get(row.id) ?? []).reduce((sum, one) => sum + one.count, 0),
        locksOf: locks.get(row.id) ?? [],
      })),
      counts: {
        leases: await countByState(session, 'leases', project),
        instances: await countByState(session, 'instances', project),
        removals: await countByState(session, 'removals', project),
        findings: Object.values(findingsByCode).reduce((sum, n) => sum + n, 0),
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
