/** Makers of identifiers. Randomness lives here and nowhere in the model. */
import { randomBytes, randomFillSync, randomInt } from 'node:crypto'

const letters = 'abcdefghijklmnopqrstuvwxyz'
const alphanumerics = `${letters}0123456789`

/** `length` characters, the first a letter, the rest `[a-z0-9]`. */
export const letterFirst = (length: number): string => {
  let text = letters[randomInt(letters.length)] as string
  while (text.length < length) text += alphanumerics[randomInt(alphanumerics.length)] as string
  return text
}

// A crowd that ends makes a dozen ids for each of its leases: asking the system for a few bytes at a time took as long as a quarter of its statements.
const pool = Buffer.alloc(4096)
let used = pool.length

/** At most 4096 bytes. */
export const hex = (bytes: number): string => {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  used += bytes
  return pool.toString('hex', used - bytes, used)
}

// Counts on for ever, so that transactions of several milliseconds that make ids in turn keep the order of each; 26 bits, begun low.
let counter = randomInt(2 ** 20)

/** A UUIDv7 as 32 hex digits: ordered by the milliseconds given, and within one process and millisecond by the calls (RFC 9562, 6.2). */
export const uuidv7Hex = (nowMs: number): string => {
  counter = (counter + 1) % 2 ** 26
  const high = counter >>> 14
  const low = counter & 0x3fff
  return nowMs.toString(16).padStart(12, '0') + (0x7000 | high).toString(16) + (0x8000 | low).toString(16) + hex(6)
}

/** A secret for bearer tokens: 32 random bytes as base64url, after a prefix that secret scanners can match. */
export const secret = (prefix: string): string => `${prefix}${randomBytes(32).toString('base64url')}`
