/** One text for one value: what is signed, so that neither the order of keys nor white space makes two of it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/**
 * Keys in the order of their UTF-16 units, no white space, whole numbers only: what RFC 8785 writes, for what we sign.
 * @throws for what has no such text: a fraction, an endless number, a lone half of a character, undefined
 */
export const canonical = (value: Json): string => {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(value) || Object.is(value, -0)) throw new Error(`${value} is no whole number that can be signed`)
    return String(value)
  }
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw new Error('a text with half a character can not be signed')
    return JSON.stringify(value)
  }
  if (Array.isArray(value)) return `[${value.map((one: Json) => canonical(one)).join(',')}]`
  if (typeof value !== 'object') throw new Error(`${typeof value} can not be signed`)
  const object = value as { readonly [key: string]: Json }
  const keys = Object.keys(object).toSorted((a, b) => (a < b ? -1 : 1))
  return `{${keys.map((key) => `${canonical(key)}:${canonical(object[key] as Json)}`).join(',')}}`
}
