/** All that may stand in the way of a removal, in one statement: every removal asks before its fresh read, and once more with its intent. */
import { sql } from 'kysely'
import type { HoldFacts } from '../model/removal.ts'
import { forkStop, stopText, type Stop, type StopCode } from '../model/stop.ts'
import type { Session } from './store.ts'

export interface Obstacles {
  /** The newest first. */
  holds: HoldFacts[]
  /** Stops, and scopes that are frozen (`*`: all). */
  frozenScopes: (string | Stop)[]
}

type Row = { at: number } & (
  | { what: 'hold'; a: string; b: HoldFacts['targetType']; c: string }
  | { what: 'stop'; a: string; b: StopCode }
  | { what: 'fork'; a: string }
  | { what: 'freeze'; a: string }
)

/** Because this database may be a copy, or was forked. */
export const stopsAmong = ({ frozenScopes }: Obstacles): Stop[] => frozenScopes.filter((one) => typeof one !== 'string')

export const readObstacles = async (session: Session, now: number): Promise<Obstacles> => {
  const { rows } = await sql<Row>`select 'hold' as what, id as a, target_type as b, target_id as c, created_at as at
      from holds where removed_at is null and (until_at is null or until_at > ${now})
    union all select 'stop', scope, code, null, since_at from stops
    union all select 'fork', former, null, null, held_since from installation where id = 1
    union all select 'freeze', scope, null, null, 0 from freezes
    order by at desc, a`.execute(session.db)
  const stops: Stop[] = []
  const forks: Stop[] = []
  const obstacles: Obstacles = { holds: [], frozenScopes: [] }
  const frozen: string[] = []
  for (const row of rows) {
    if (row.what === 'hold') obstacles.holds.push({ id: row.a, targetType: row.b, targetId: row.c })
    else if (row.what === 'stop') stops.push({ scope: row.a, by: stopText(row.b, row.a), since: row.at })
    else if (row.what === 'fork') forks.push(...forkStop(JSON.parse(row.a) as string[], row.at))
    else frozen.push(row.a)
  }
  return { ...obstacles, frozenScopes: [...stops, ...forks, ...frozen] }
}
