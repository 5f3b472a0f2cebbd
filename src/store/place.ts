/** Where this database lives now, as far as it says (see `model/place.ts`). */
import { stat } from 'node:fs/promises'
import { sql } from 'kysely'
import { bootId, findMachineId } from '../lib/host.ts'
import type { FilePlace, Place, ServerPlace } from '../model/place.ts'
import type { Session } from './store.ts'

/** The path of the SQLite file that a session is on; null: it is in memory, and ends with its process. */
export const fileOf = async (session: Session): Promise<string | null> => {
  const { rows } = await sql<{ file: string }>`select file from pragma_database_list where name = 'main'`.execute(session.db)
  return rows[0]?.file || null
}

const filePlace = async (session: Session): Promise<FilePlace> => {
  const file = await fileOf(session)
  if (file === null) return { kind: 'file', machineId: findMachineId(), bootId: bootId(), device: 'memory', inode: 'memory', bornAt: null }
  const facts = await stat(file, { bigint: true })
  return {
    kind: 'file',
    machineId: findMachineId(),
    bootId: bootId(),
    device: String(facts.dev),
    inode: String(facts.ino),
    // 0 where the file system keeps none; where the kernel does not say, Node gives the last change of the inode, which is no birth.
    bornAt: facts.birthtimeNs > 0n && facts.birthtimeNs !== facts.ctimeNs ? String(facts.birthtimeNs) : null,
  }
}

/** Null where this user may not ask, or the server can't answer: that says nothing. */
const ask = async <T>(session: Session, text: string): Promise<T | null> => {
  try {
    const { rows } = await sql.raw<{ value: T }>(text).execute(session.db)
    return rows[0]?.value ?? null
  } catch (error) {
    // Any other failure is one of the look itself, and not taken for "not said".
    if (['42501', '42883', '55000', '0A000'].includes((error as { code?: string }).code ?? '')) return null
    throw error
  }
}

const serverPlace = async (session: Session): Promise<ServerPlace> => {
  const oid = await ask<string>(session, 'select oid::text as value from pg_database where datname = current_database()')
  if (oid === null) throw new Error('PostgreSQL does not say which database this is')
  // The first eight digits of a segment's name are the timeline that is written now; the control file is behind until the next checkpoint.
  const segment = await ask<string>(session, 'select pg_walfile_name(pg_current_wal_lsn()) as value')
  const timeline = segment === null ? null : Number.parseInt(segment.slice(0, 8), 16)
  return {
    kind: 'server',
    systemId: await ask<string>(session, 'select system_identifier::text as value from pg_control_system()'),
    timeline: timeline ?? (await ask<number>(session, 'select timeline_id as value from pg_control_checkpoint()')),
    databaseOid: oid,
  }
}

/** Not within a transaction that writes: on PostgreSQL a question that may not be asked would end it. */
export const readPlace = (session: Session): Promise<Place> => (session.dialect === 'sqlite' ? filePlace(session) : serverPlace(session))
