/** What both databases store unchanged and give back as it was, but for NUL: anything else is refused, never silently stored as something else. */

const refuse = (what: string): never => {
  throw new TypeError(`${what} can't be stored: use a whole number below 2^53, text or null`)
}

const fits = (value: bigint): boolean => value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)

/** PostgreSQL keeps no NUL in a text, and a stranger names its resources as it likes: the one character that is stored as another, on both. */
const withoutNul = (text: string): string => (text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text)

/**
 * A parameter of a statement, as both drivers take it: booleans are 1 and 0.
 * @throws TypeError
 */
export const storable = (value: unknown): string | number | null | Uint8Array => {
  if (typeof value === 'string') return withoutNul(value)
  if (value === null || value instanceof Uint8Array) return value
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : refuse(`the number ${value}`)
  if (typeof value === 'bigint') return fits(value) ? Number(value) : refuse(`the number ${value}`)
  return refuse(`a value of type ${value instanceof Date ? 'Date' : typeof value}`)
}

/**
 * An integer that a database gave as text.
 * @throws RangeError over 2^53, where a number would be another one
 */
export const readInteger = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`the stored integer ${text} is beyond 2^53`)
  return value
}
