/** Which boxes of fleets are set aside, and by what: the same for whoever takes one, counts them, or tells of them. */
import { resourceKey, type HoldFacts } from '../../model/removal.ts'
import { setAsideBy } from '../../model/set-aside.ts'
import type { Stop } from '../../model/stop.ts'
import { attemptsOf } from '../../store/attempts.ts'
import type { InstanceRow } from '../../store/instances.ts'
import type { Session } from '../../store/store.ts'
import { readObstacles, stopsAmong } from '../../store/obstacles.ts'

const waits = (row: InstanceRow): boolean => row.state === 'idle' || row.wiping_since !== null

export interface BoxObstacles {
  stops: Stop[]
  holds: HoldFacts[]
}

export const readObstaclesOfBoxes = async (session: Session, now: number): Promise<BoxObstacles> => {
  const all = await readObstacles(session, now)
  const holds = all.holds.filter(({ targetType }) => targetType === 'instance' || targetType === 'resource')
  return { stops: stopsAmong(all), holds }
}

/** Then only a contradiction can stand against a box. */
export const isClear = ({ stops, holds }: BoxObstacles): boolean => stops.length + holds.length === 0

/** Why, by the id of the instance; only what waits or is being wiped can be in it. */
export const setAside = async (
  session: Session,
  rows: readonly InstanceRow[],
  { stops, holds }: BoxObstacles,
): Promise<Map<string, string>> => {
  const waiting = rows.filter(waits)
  if (waiting.length === 0) return new Map()
  const named = holds.some((one) => one.targetType === 'resource')
    ? await attemptsOf(
        session,
        waiting.map((row) => row.id),
      )
    : []
  const attempts = new Map(named.map((row) => [row.id, row]))
  return new Map(
    waiting.flatMap((row) => {
      const attempt = row.attempt_id === null ? undefined : attempts.get(row.attempt_id)
      const key = attempt?.native_id ? resourceKey(row.provider, attempt.location, attempt.native_id) : null
      const box = { instanceId: row.id, resourceKey: key, scope: row.scope, madeAt: row.created_at, checkedAt: row.checked_at }
      const by = setAsideBy(box, stops, holds)
      return by === null ? [] : [[row.id as string, by] as const]
    }),
  )
}
