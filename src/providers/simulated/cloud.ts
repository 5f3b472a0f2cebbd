/**
 * The simulated cloud itself: machines with disks, nics and addresses in an SQLite file, by the clock that it is given. Nothing here waits and nothing
 * here lies; `api.ts` does both. What has happened by itself meanwhile (a deletion that ran on, a machine's own end) is settled before each call.
 */
import { accountClock } from './clock.ts'
import { Database } from './database.ts'
import { type Fault, type FaultSpec, addFault, clearFaults, listFaults } from './faults.ts'
import { type Edge, type OnEnd, type Resource, type Row, hasEnded, idOf, parseId, resourceAt } from './resource.ts'
import { settle } from './settle.ts'
import { type Kind, tag } from './words.ts'

export { effects, type Fault, faultProblem } from './faults.ts'
export type { Resource } from './resource.ts'
export { defaultLocations, isKind, kinds, operations } from './words.ts'

export interface LaunchSpec {
  kind: Kind
  location: string
  name: string
  /** null: they will not be readable. */
  tags: Record<string, string> | null
  /** Fixed for ever; the token of a machine makes its launch idempotent. */
  token?: string | null
  /** ms from now until it exists, until a machine runs, until a listing shows it. */
  delayMs?: number
  startMs?: number
  invisibleMs?: number
  /** ms from now until the machine ends by itself; null: never. */
  lifetimeMs?: number | null
  atDeadline?: Row['at_deadline']
  /** How long it is still listed after its end, ms. */
  lingerMs?: number
}

export interface Attach {
  member: string
  target: string
  onEnd: OnEnd
}

export type Ending =
  | { kind: 'absent' }
  /** It has another version than was asked for: nothing was done. */
  | { kind: 'changed'; version: number }
  | { kind: 'blocked'; by: string }
  /** The end of it is under way. */
  | { kind: 'accepted'; requestId: string }
  | { kind: 'ended'; requestId: string }

/** What stands beside a listed resource. */
export interface Neighbour {
  onEnd: OnEnd
  /** `under`: the listed one is attached to it; `above`: it is attached to the listed one. */
  side: 'under' | 'above'
  id: string
  kind: Kind
  ref: string | null
  token: string | null
}

export interface ListQuery {
  location: string
  kind: Kind
  /** Resources behind this one. */
  after: number
  size: number
  /** Only those that came into being before now - this, ms. */
  olderThanMs: number
  /** `tagged`: all that may carry a ref tag; `ref`: all that may carry this one. What has unreadable tags may carry any. */
  filter: 'tagged' | { ref: string; token?: string }
}
export interface Listed {
  resource: Resource
  seq: number
  neighbours: Neighbour[]
}

export class NotFoundError extends Error {}

export interface Cloud {
  readonly path: string
  readonly database: Database
  account(): string
  /** Machine and members in one call, idempotent by the machine's token. */
  launch(
    specs: readonly LaunchSpec[],
    attach?: readonly { member: number; target: number; onEnd: OnEnd }[],
  ): { resources: Resource[]; repeated: boolean }
  /** What was made with this token, while it is there. `used`: something was, and is gone. */
  byToken(token: string): Resource | 'used' | 'coming' | null
  get(id: string): Resource | null
  /** With what is attached to it, and what it is attached to. */
  look(id: string): Listed | null
  list(query: ListQuery): { listed: Listed[]; more: boolean }
  /** Everything, also without tags and also what listings don't show yet. */
  all(): Resource[]
  locations(): string[]
  /** The same again under an id of its own: tags are copied, what was fixed at creation is not. @throws NotFoundError */
  copy(id: string): Resource
  end(id: string, how?: { delayMs?: number; durationMs?: number; version?: string }): Ending
  /** A request id for what was accepted and will not happen. */
  requestId(): string
  attach(edge: Attach): void
  setTags(id: string, tags: Record<string, string> | null): void
  /** Moves the deadline; false when it does not run. */
  rearm(id: string, lifetimeMs: number): boolean
  stop(id: string): void
  /** A holder leaves something on a machine that runs. @throws NotFoundError */
  leave(id: string, item: string): void
  /** What holders left on it. */
  contents(id: string): string[]
  /** Takes all of it away; false when it does not run. */
  wipe(id: string): boolean
  addFault(fault: FaultSpec): Fault
  faults(): Fault[]
  clearFaults(): number
  close(): void
}

const rowColumns = [
  'kind',
  'location',
  'name',
  'tags',
  'ref',
  'token',
  'created_at',
  'ready_at',
  'visible_at',
  'deadline_at',
  'at_deadline',
  'linger_ms',
  'due_at',
] as const

/** Opens the account in this file, and makes it where there is none. `given`: another time than the account's own, in ms. */
export const openCloud = (path: string, given?: () => number): Cloud => {
  const database = new Database(path)
  const now = given ?? accountClock(database)
  const row = (seq: number): Row | undefined => database.one<Row>('select * from resources where seq = ?', seq)
  /** A row that has come into being; one whose end is over is there while it is listed. */
  const byId = (id: string, at: number): Row | undefined => {
    const parsed = parseId(id)
    const found = parsed ? row(parsed.seq) : undefined
    return found && found.kind === parsed?.kind && found.created_at <= at ? found : undefined
  }
  const targetsOf = (seq: number): string[] =>
    database
      .all<{ kind: Kind; seq: number }>(
        'select r.kind, r.seq from attachments a join resources r on r.seq = a.target where a.member = ? order by r.seq',
        seq,
      )
      .map((one) => idOf(one.kind, one.seq))
  const describe = (one: Row, at: number): Resource => resourceAt(one, targetsOf(one.seq), at)
  const existing = (id: string, at: number): Row => {
    const found = byId(id, at)
    if (found === undefined) throw new NotFoundError(`there is no resource ${id} in ${path}`)
    return found
  }
  const call = <T>(body: (at: number) => T): T =>
    database.transaction(() => {
      const at = Math.floor(now())
      settle(database, at)
      return body(at)
    })
  const requestId = (): string => {
    database.run('update account set requests = requests + 1')
    return `req-${database.one<{ requests: number }>('select requests from account')?.requests}`
  }
  const insert = (spec: LaunchSpec, at: number): number => {
    const created = at + (spec.delayMs ?? 0)
    const deadline = spec.lifetimeMs == null ? null : created + spec.lifetimeMs
    const values: Record<(typeof rowColumns)[number], string | number | null> = {
      kind: spec.kind,
      location: spec.location,
      name: spec.name,
      tags: spec.tags === null ? null : JSON.stringify(spec.tags),
      ref: spec.tags?.[tag.ref] ?? null,
      token: spec.token ?? null,
      created_at: created,
      ready_at: created + (spec.startMs ?? 0),
      visible_at: created + (spec.invisibleMs ?? 0),
      deadline_at: deadline,
      at_deadline: spec.atDeadline ?? 'terminate',
      linger_ms: spec.lingerMs ?? 0,
      due_at: deadline,
    }
    const marks = rowColumns.map(() => '?').join(', ')
    return database.run(`insert into resources (${rowColumns.join(', ')}) values (${marks})`, ...rowColumns.map((column) => values[column]))
  }
  const connect = (edge: Edge): void => {
    database.run('insert or replace into attachments (member, target, on_end) values (?, ?, ?)', edge.member, edge.target, edge.on_end)
    database.run('update resources set version = version + 1 where seq in (?, ?)', edge.member, edge.target)
  }
  const neighbours = (page: readonly Row[]): Map<number, Neighbour[]> => {
    const found = new Map<number, Neighbour[]>(page.map((one) => [one.seq, []]))
    const wanted = JSON.stringify([...found.keys()])
    for (const side of ['under', 'above'] as const) {
      const [own, other] = side === 'under' ? ['member', 'target'] : ['target', 'member']
      const edges = database.all<{ own: number; on_end: OnEnd; seq: number; kind: Kind; ref: string | null; token: string | null }>(
        `select a.${own} as own, a.on_end, r.seq, r.kind, r.ref, r.token from attachments a join resources r on r.seq = a.${other}
         where a.${own} in (select value from json_each(?)) order by a.${own}, r.seq`,
        wanted,
      )
      for (const { own: seq, on_end: onEnd, ...peer } of edges)
        found.get(seq)?.push({ onEnd, side, id: idOf(peer.kind, peer.seq), kind: peer.kind, ref: peer.ref, token: peer.token })
    }
    return found
  }
  const blocker = (one: Row, at: number): string | null => {
    const targets = database.all<Row>('select r.* from attachments a join resources r on r.seq = a.target where a.member = ?', one.seq)
    const live = targets.find((target) => !hasEnded(target, at))
    return live ? `${live.kind} ${idOf(live.kind, live.seq)}` : null
  }
  const byToken = (token: string, at: number): Resource | 'used' | 'coming' | null => {
    const known = database.one<{ machine: number }>('select machine from tokens where token = ?', token)
    if (known === undefined) return null
    const made = row(known.machine)
    if (made === undefined || hasEnded(made, at)) return 'used'
    return made.created_at > at ? 'coming' : describe(made, at)
  }

  return {
    path,
    database,
    account: () => (database.one<{ id: string }>('select id from account') as { id: string }).id,
    launch: (specs, attach = []) =>
      call((at) => {
        const token = specs.find((spec) => spec.kind === 'machine')?.token
        const before = token ? byToken(token, at) : null
        if (before !== null) return { resources: typeof before === 'string' ? [] : [before], repeated: true }
        const made = specs.map((spec) => insert(spec, at))
        if (token)
          database.run(
            'insert into tokens (token, machine) values (?, ?)',
            token,
            made[specs.findIndex((spec) => spec.kind === 'machine')] as number,
          )
        for (const { member, target, onEnd } of attach)
          connect({ member: made[member] as number, target: made[target] as number, on_end: onEnd })
        return { resources: made.map((seq) => describe(row(seq) as Row, at)), repeated: false }
      }),
    byToken: (token) => call((at) => byToken(token, at)),
    get: (id) =>
      call((at) => {
        const found = byId(id, at)
        return found ? describe(found, at) : null
      }),
    look: (id) =>
      call((at) => {
        const found = byId(id, at)
        return found ? { resource: describe(found, at), seq: found.seq, neighbours: neighbours([found]).get(found.seq) ?? [] } : null
      }),
    list: ({ location, kind, after, size, olderThanMs, filter }) =>
      call((at) => {
        const [which, ...value] =
          filter === 'tagged'
            ? ['(ref is not null or tags is null)']
            : ['(ref = ? or tags is null or token = ?)', filter.ref, filter.token ?? null]
        const found = database.all<Row>(
          `select * from resources where location = ? and kind = ? and seq > ? and created_at <= ? and visible_at <= ? and ${which} order by seq limit ?`,
          location,
          kind,
          after,
          at - olderThanMs,
          at,
          ...value,
          size + 1,
        )
        const page = found.slice(0, size)
        const beside = neighbours(page)
        const listed = page.map((one) => {
          const around = beside.get(one.seq) ?? []
          const targets = around.filter((peer) => peer.side === 'under').map((peer) => peer.id)
          return { resource: resourceAt(one, targets, at), seq: one.seq, neighbours: around }
        })
        return { listed, more: found.length > size }
      }),
    all: () =>
      call((at) => database.all<Row>('select * from resources where created_at <= ? order by seq', at).map((one) => describe(one, at))),
    locations: () => call(() => database.all<{ location: string }>('select distinct location from resources').map((one) => one.location)),
    copy: (id) =>
      call((at) => {
        const { kind, location, name, tags } = existing(id, at)
        const seq = insert({ kind, location, name, tags: tags === null ? null : (JSON.parse(tags) as Record<string, string>) }, at)
        return describe(row(seq) as Row, at)
      }),
    end: (id, { delayMs = 0, durationMs = 0, version } = {}) =>
      call((at) => {
        const found = byId(id, at)
        if (found === undefined || hasEnded(found, at)) return { kind: 'absent' }
        if (found.ending_at !== null) return { kind: 'accepted', requestId: requestId() }
        if (version !== undefined && version !== String(found.version)) return { kind: 'changed', version: found.version }
        const by = blocker(found, at)
        if (by !== null) return { kind: 'blocked', by }
        const ended = at + delayMs + durationMs
        database.run('update resources set ending_at = ?, ended_at = ?, due_at = ? where seq = ?', at + delayMs, ended, ended, found.seq)
        settle(database, at)
        return { kind: durationMs === 0 ? 'ended' : 'accepted', requestId: requestId() }
      }),
    requestId: () => call(requestId),
    attach: ({ member, target, onEnd }) =>
      call((at) => connect({ member: existing(member, at).seq, target: existing(target, at).seq, on_end: onEnd })),
    setTags: (id, tags) =>
      call((at) => {
        const text = tags === null ? null : JSON.stringify(tags)
        database.run(
          'update resources set tags = ?, ref = ?, version = version + 1 where seq = ?',
          text,
          tags?.[tag.ref] ?? null,
          existing(id, at).seq,
        )
      }),
    rearm: (id, lifetimeMs) =>
      call((at) => {
        const found = byId(id, at)
        if (found === undefined || found.ending_at !== null || found.stopped_at !== null) return false
        database.run('update resources set deadline_at = ?, due_at = ? where seq = ?', at + lifetimeMs, at + lifetimeMs, found.seq)
        return true
      }),
    stop: (id) =>
      call((at) => {
        database.run('update resources set stopped_at = ?, version = version + 1 where seq = ?', at, existing(id, at).seq)
      }),
    leave: (id, item) =>
      call((at) => {
        database.run('insert or replace into contents (machine, item) values (?, ?)', existing(id, at).seq, item)
      }),
    contents: (id) =>
      call((at) =>
        database
          .all<{ item: string }>('select item from contents where machine = ? order by item', existing(id, at).seq)
          .map((one) => one.item),
      ),
    wipe: (id) =>
      call((at) => {
        const found = byId(id, at)
        if (found === undefined || found.ending_at !== null || found.stopped_at !== null) return false
        database.run('delete from contents where machine = ?', found.seq)
        return true
      }),
    addFault: (fault) => addFault(database, fault),
    faults: () => listFaults(database),
    clearFaults: () => clearFaults(database),
    close: () => database.close(),
  }
}
