/** Is an error the database's: not there, not reachable, out of space, or busy beyond waiting? Then the request may be sent again later. */

/** PostgreSQL: connection exceptions (08), insufficient resources (53), operator intervention (57P0x), lock not available. */
const postgres = /^(08|53)|^57P0\d$|^55P03$|^25P03$/
const sockets = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])
/** SQLite: BUSY, LOCKED, READONLY, IOERR, CORRUPT, FULL, CANTOPEN, NOTADB. */
const sqlite = new Set([5, 6, 8, 10, 11, 13, 14, 26])
/** The pool of pg gives these no code. */
const poolMessages = [
  'Connection terminated',
  'timeout exceeded when trying to connect',
  'Client has encountered a connection error',
  'Query read timeout',
]

export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  const { code, errcode, severity } = error as { code?: unknown; errcode?: unknown; severity?: unknown }
  if (code === 'ERR_SQLITE_ERROR') return typeof errcode === 'number' && sqlite.has(errcode & 0xff)
  if (typeof code === 'string' && sockets.has(code)) return true
  if (typeof code === 'string' && severity !== undefined && postgres.test(code)) return true
  return poolMessages.some((text) => error.message.startsWith(text)) || error.message === 'the store is closed'
}
