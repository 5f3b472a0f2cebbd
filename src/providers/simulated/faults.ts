/** How the cloud lies, for as long as somebody wants it to. Faults are rows of the account's file, so every process meets the same ones. */
import type { Database } from './database.ts'
import type { Kind, Operation } from './words.ts'

export const effects = [
  'error-before',
  'error-after',
  'hang',
  'slow',
  'lag',
  'ignore',
  'denied',
  'not-found',
  'fail-page',
  'empty-page',
  'repeat-page',
  'throttle',
] as const
export type Effect = (typeof effects)[number]

export interface FaultSpec {
  operation: Operation
  effect: Effect
  /** How often it strikes; null: until cleared. */
  count: number | null
  /** How long one strike lasts, ms; of slow, lag, hang and throttle only. */
  lengthMs: number | null
  /** null: every page, location, kind. */
  page: number | null
  location: string | null
  kind: Kind | null
}

export interface Fault extends Omit<FaultSpec, 'count'> {
  id: number
  /** null: until cleared. */
  remaining: number | null
  /** How often it has struck. */
  struck: number
}

const onlyFor: Partial<Record<Effect, readonly Operation[]>> = {
  lag: ['create', 'list'],
  ignore: ['delete', 'wipe'],
  'fail-page': ['list'],
  'empty-page': ['list'],
  'repeat-page': ['list'],
}
const needsLength: readonly Effect[] = ['slow', 'lag']
/** Of `throttle` it is how long the cloud wants to be left alone. */
const takesLength: readonly Effect[] = [...needsLength, 'hang', 'throttle']

/** Why this fault makes no sense, for people; null: it does. */
export const faultProblem = (fault: FaultSpec): string | null => {
  const operations = onlyFor[fault.effect]
  if (operations && !operations.includes(fault.operation))
    return `${fault.effect} is for ${operations.join(' and ')}, not for ${fault.operation}`
  if (fault.lengthMs === null && needsLength.includes(fault.effect)) return `${fault.effect} needs its length`
  if (fault.lengthMs !== null && !takesLength.includes(fault.effect)) return `${fault.effect} has no length`
  if (fault.page !== null && fault.operation !== 'list') return 'only a list has pages'
  return null
}

interface FaultRow {
  id: number
  operation: Operation
  effect: Effect
  remaining: number | null
  length_ms: number | null
  page: number | null
  location: string | null
  kind: Kind | null
  struck: number
}

const faultOf = ({ length_ms: lengthMs, ...row }: FaultRow): Fault => ({ ...row, lengthMs })

/** @throws Error with `faultProblem` */
export const addFault = (database: Database, fault: FaultSpec): Fault => {
  const problem = faultProblem(fault)
  if (problem !== null) throw new Error(problem)
  return database.transaction(() => {
    const { operation, effect, count, lengthMs, page, location, kind } = fault
    const id = database.run(
      'insert into faults (operation, effect, remaining, length_ms, page, location, kind) values (?, ?, ?, ?, ?, ?, ?)',
      operation,
      effect,
      count,
      lengthMs,
      page,
      location,
      kind,
    )
    return faultOf(database.one<FaultRow>('select * from faults where id = ?', id) as FaultRow)
  })
}

/** Those that still strike, oldest first. */
export const listFaults = (database: Database): Fault[] =>
  database.all<FaultRow>('select * from faults where remaining is null or remaining > 0 order by id').map(faultOf)

/** @returns how many there were */
export const clearFaults = (database: Database): number =>
  database.transaction(() => {
    const { length } = listFaults(database)
    database.run('delete from faults')
    return length
  })

export interface Call {
  operation: Operation
  location: string | null
  kind: Kind | null
  page: number | null
  /** Effects that this page has shown already. */
  shown?: readonly Effect[]
}

/** What strikes one call: any waits, and at most one lie. */
export interface Strike {
  hang: { lengthMs: number | null } | null
  slowMs: number
  lagMs: number
  lie: Effect | null
  /** Of a throttled call; null: the cloud does not say. */
  retryAfterMs: number | null
}

const waits: readonly Effect[] = ['hang', 'slow', 'lag']

/** Counts what it strikes, so call it once for each call. */
export const strike = (database: Database, call: Call): Strike => {
  const none: Strike = { hang: null, slowMs: 0, lagMs: 0, lie: null, retryAfterMs: null }
  // Looked at first without the write lock: most accounts have no faults.
  if (database.one('select 1 from faults limit 1') === undefined) return none
  return database.transaction(() => {
    const matching = listFaults(database).filter(
      (fault) =>
        fault.operation === call.operation &&
        (fault.location === null || fault.location === call.location) &&
        (fault.kind === null || fault.kind === call.kind) &&
        (fault.page === null || fault.page === call.page) &&
        !call.shown?.includes(fault.effect),
    )
    const first = (effect: Effect): Fault | undefined => matching.find((fault) => fault.effect === effect)
    const [hang, slow, lag] = [first('hang'), first('slow'), first('lag')]
    const lie = hang ? undefined : matching.find((fault) => !waits.includes(fault.effect))
    for (const fault of hang ? [hang] : [slow, lag, lie])
      if (fault) database.run('update faults set remaining = remaining - 1, struck = struck + 1 where id = ?', fault.id)
    if (hang) return { ...none, hang: { lengthMs: hang.lengthMs } }
    return {
      hang: null,
      slowMs: slow?.lengthMs ?? 0,
      lagMs: lag?.lengthMs ?? 0,
      lie: lie?.effect ?? null,
      retryAfterMs: lie?.lengthMs ?? null,
    }
  })
}
