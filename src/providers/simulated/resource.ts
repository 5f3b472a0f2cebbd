/** A row of the account, and what it is at a given time. */
import { type Kind, type State, idPrefix, isKind } from './words.ts'

export interface Row {
  seq: number
  kind: Kind
  location: string
  name: string
  /** JSON; null: they can't be read. */
  tags: string | null
  ref: string | null
  token: string | null
  created_at: number
  ready_at: number
  visible_at: number
  deadline_at: number | null
  at_deadline: 'terminate' | 'stop'
  stopped_at: number | null
  ending_at: number | null
  ended_at: number | null
  linger_ms: number
  settled: number
  due_at: number | null
  /** Grows with every change of its tags or attachments, and when it is stopped. */
  version: number
}

/** What the cloud tells of a resource. */
export interface Resource {
  id: string
  kind: Kind
  location: string
  name: string
  state: State
  /** null: unreadable, which is not the same as none. */
  tags: Record<string, string> | null
  /** Fixed by the request that made it; no copy has it. */
  clientToken: string | null
  createdAt: number
  attachedTo: string[]
  version: number
}

export type OnEnd = 'keep' | 'delete'
/** `member` stands on `target` and can't be removed before it; with `delete` it goes when the target does. */
export interface Edge {
  member: number
  target: number
  on_end: OnEnd
}

export const idOf = (kind: Kind, seq: number): string => `${idPrefix[kind]}-${seq.toString(16).padStart(8, '0')}`

/** Null for text that is no id of this cloud. */
export const parseId = (id: string): { kind: Kind; seq: number } | null => {
  const [, prefix, digits] = /^([a-z]+)-([0-9a-f]{8,13})$/.exec(id) ?? []
  const kind = Object.entries(idPrefix).find(([, one]) => one === prefix)?.[0]
  if (kind === undefined || !isKind(kind) || digits === undefined) return null
  const seq = Number.parseInt(digits, 16)
  return idOf(kind, seq) === id ? { kind, seq } : null
}

export const hasEnded = (row: Row, now: number): boolean => row.ended_at !== null && row.ended_at <= now

const stateOf = (row: Row, attached: boolean, now: number): State => {
  const machine = row.kind === 'machine'
  if (hasEnded(row, now)) return machine ? 'terminated' : 'deleted'
  if (row.ending_at !== null && row.ending_at <= now) return machine ? 'terminating' : 'deleting'
  if (!machine) return attached ? 'attached' : 'available'
  if (row.stopped_at !== null && row.stopped_at <= now) return 'stopped'
  return row.ready_at > now ? 'pending' : 'running'
}

/** @param targets ids of what it is attached to */
export const resourceAt = (row: Row, targets: string[], now: number): Resource => ({
  id: idOf(row.kind, row.seq),
  kind: row.kind,
  location: row.location,
  name: row.name,
  state: stateOf(row, targets.length > 0, now),
  tags: row.tags === null ? null : (JSON.parse(row.tags) as Record<string, string>),
  clientToken: row.token,
  createdAt: row.created_at,
  attachedTo: targets,
  version: row.version,
})
