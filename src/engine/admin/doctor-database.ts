/** Does the database answer, and does it keep what it confirmed? */
import { sql } from 'kysely'
import { errorText } from '../../lib/redact.ts'
import type { DoctorCheck } from '../../model/wire.ts'
import type { Session, Store } from '../../store/store.ts'

const name = 'database'
const ok = (message: string): DoctorCheck => ({ name, level: 'ok', message, remedy: null })

const setting = async (session: Session, query: string): Promise<string> => {
  const [row] = (await sql.raw<Record<string, string | number>>(query).execute(session.db)).rows
  return String(Object.values(row ?? {})[0] ?? 'unknown')
}

const checkSqlite = async (store: Store): Promise<DoctorCheck> => {
  // On the connection that writes: `synchronous` is its own, not the file's.
  const [journal, synchronous] = await store.write(
    async (tx) => [await setting(tx, 'pragma journal_mode'), await setting(tx, 'pragma synchronous')] as const,
  )
  if (journal === 'wal' && (synchronous === '2' || synchronous === '3'))
    return ok(`${store.description} answers, and every commit is flushed to the disk`)
  return {
    name,
    level: 'error',
    message: `${store.description} runs with journal_mode ${journal} and synchronous ${synchronous}: a power cut can lose what was confirmed`,
    remedy: 'put the data folder on a local file system, and restart',
  }
}

const checkPostgres = async (store: Store): Promise<DoctorCheck> => {
  const found = await store.read(async (session) => ({
    version: await setting(session, 'show server_version'),
    fsync: await setting(session, 'show fsync'),
    pages: await setting(session, 'show full_page_writes'),
    commit: await setting(session, 'show synchronous_commit'),
  }))
  const lossy = [
    found.fsync === 'off' ? 'fsync' : '',
    found.pages === 'off' ? 'full_page_writes' : '',
    found.commit === 'off' ? 'synchronous_commit' : '',
  ].filter((one) => one !== '')
  if (lossy.length === 0) return ok(`${store.description} (${found.version}) answers, and every commit is flushed to the disk`)
  return {
    name,
    level: 'error',
    message: `${store.description} (${found.version}) has ${lossy.join(' and ')} off: a crash can lose what was confirmed`,
    remedy: `set ${lossy.join(', ')} to on`,
  }
}

/** @returns `answers: false` when nothing else can be looked at */
export const checkDatabase = async (store: Store): Promise<{ check: DoctorCheck; answers: boolean }> => {
  try {
    return { check: await (store.dialect === 'sqlite' ? checkSqlite(store) : checkPostgres(store)), answers: true }
  } catch (error) {
    const message = `${store.description} does not answer: ${errorText(error)}`
    return { check: { name, level: 'error', message, remedy: 'start it, or correct LEASEHOLD_DATABASE_URL' }, answers: false }
  }
}
