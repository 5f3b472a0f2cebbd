/** Makers of identifiers. Randomness lives here and nowhere in the model. */
import { randomBytes, randomInt } from 'node:crypto'

const letters = 'abcdefghijklmnopqrstuvwxyz'
const alphanumerics = `${letters}0123456789`

/** `length` characters, the first a letter, the rest `[a-z0-9]`. */
export const letterFirst = (length: number): string => {
  let text = letters[randomInt(letters.length)] as string
  while (text.length < length) text += alphanumerics[randomInt(alphanumerics.length)] as string
  return text
}

export const hex = (bytes: number): string => randomBytes(bytes).toString('hex')

/** A UUIDv7 as 32 hex digits: ordered by the milliseconds given. */
export const uuidv7Hex = (nowMs: number): string => {
  const random = randomBytes(10)
  random[0] = ((random[0] as number) & 0x0f) | 0x70
  random[2] = ((random[2] as number) & 0x3f) | 0x80
  return nowMs.toString(16).padStart(12, '0') + random.toString('hex')
}

/** A secret for bearer tokens: 32 random bytes as base64url, after a prefix that secret scanners can match. */
export const secret = (prefix: string): string => `${prefix}${randomBytes(32).toString('base64url')}`
