/** What happens in the cloud by itself: machines reach their deadline, deletions come to their end, what has ended is forgotten. */
import type { Database } from './database.ts'
import { type Edge, type Row, hasEnded } from './resource.ts'

/** Rows per step, so that one step reads little. */
const step = 500

const end = (database: Database, one: Row, endedAt: number): void => {
  database.run('update resources set ending_at = ?, ended_at = ?, due_at = ? where seq = ?', endedAt, endedAt, endedAt, one.seq)
}

/** Its members go with it or are let go, as each attachment says. */
const detach = (database: Database, one: Row, endedAt: number): void => {
  for (const edge of database.all<Edge>('select * from attachments where target = ?', one.seq)) {
    if (edge.on_end === 'keep') continue
    const member = database.one<Row>('select * from resources where seq = ?', edge.member)
    if (member !== undefined && member.ended_at === null) end(database, member, endedAt)
  }
  database.run(
    'update resources set version = version + 1 where seq in (select member from attachments where target = ?1 union select target from attachments where member = ?1)',
    one.seq,
  )
  database.run('delete from attachments where target = ?', one.seq)
  database.run('delete from attachments where member = ?', one.seq)
  database.run('update resources set settled = 1, due_at = ? where seq = ?', endedAt + one.linger_ms, one.seq)
}

const settleOne = (database: Database, one: Row, now: number): void => {
  if (hasEnded(one, now) && one.ended_at !== null) {
    if (one.settled === 0) detach(database, one, one.ended_at)
    else database.run('delete from resources where seq = ?', one.seq)
  } else if (one.deadline_at !== null && one.ending_at === null && one.stopped_at === null) {
    if (one.at_deadline === 'terminate') end(database, one, one.deadline_at)
    else database.run('update resources set stopped_at = ?, due_at = null where seq = ?', one.deadline_at, one.seq)
  } else {
    database.run('update resources set due_at = ended_at where seq = ?', one.seq)
  }
}

/** Inside a transaction, before anything is read; ms. */
export const settle = (database: Database, now: number): void => {
  for (;;) {
    const due = database.all<{ seq: number }>('select seq from resources where due_at <= ? order by due_at, seq limit ?', now, step)
    if (due.length === 0) return
    for (const { seq } of due) {
      // Read again: the end of one can have been the end of another.
      const one = database.one<Row>('select * from resources where seq = ?', seq)
      if (one !== undefined) settleOne(database, one, now)
    }
  }
}
