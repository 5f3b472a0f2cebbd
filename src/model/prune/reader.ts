/** Reads the values of a document strictly: unknown keys, wrong types and values out of range are faults with their place, and all are found. */
import { parseDuration } from '../../lib/duration.ts'
import { nearest } from '../../lib/nearest.ts'
import { isMap, kindOf, pathText, valueAt, type Document, type Json, type JsonMap, type Path } from './document.ts'
import { faultAt, type Fault } from './fault.ts'

export interface Reader {
  document: Document
  faults: Fault[]
}

export const readerOf = (document: Document): Reader => ({ document, faults: [] })

export const blame = (reader: Reader, path: Path, message: string, fix: string | null = null, of: 'key' | 'value' = 'value'): void => {
  reader.faults.push(faultAt(reader.document.spotOf(path, of), message, fix))
}

const at = (reader: Reader, path: Path): Json | undefined => valueAt(reader.document.value, path)
const wrong = (reader: Reader, path: Path, expected: string): void =>
  blame(reader, path, `${pathText(path)} must be ${expected}, and is ${kindOf(at(reader, path))}`)

/** The key or, where it is not there, what should hold it. */
const missing = (reader: Reader, path: Path, fix: string): void =>
  blame(reader, path.slice(0, -1), `${pathText(path)} is missing`, fix, 'key')

/** The mapping at a path; null: it is none, or not there, and a fault says so. Keys with a reason are refused with it. */
export const mapping = (
  reader: Reader,
  path: Path,
  known: readonly string[],
  refused: Readonly<Record<string, string>> = {},
): JsonMap | null => {
  const value = at(reader, path)
  if (!isMap(value)) {
    wrong(reader, path, 'a mapping of keys to values')
    return null
  }
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue
    const reason = Object.hasOwn(refused, key) ? refused[key] : undefined
    const near = nearest(key, known)
    const fix = near === null ? `Known here: ${known.join(', ')}` : `Did you mean ${near}?`
    if (reason !== undefined) blame(reader, [...path, key], `${key}: ${reason}`, 'Take it out', 'key')
    else blame(reader, [...path, key], `unknown key "${key}"`, fix, 'key')
  }
  return value
}

/** Missing and null give undefined; `need` makes that a fault that says what belongs there. */
export const text = (reader: Reader, path: Path, need: string | null = null): string | undefined => {
  const value = at(reader, path)
  if (value === undefined || value === null) {
    if (need !== null) missing(reader, path, need)
    return undefined
  }
  if (typeof value === 'string') return value
  wrong(reader, path, 'a text')
  if (typeof value === 'number') reader.faults[reader.faults.length - 1] = { ...(reader.faults.at(-1) as Fault), fix: 'Put it in quotes' }
  return undefined
}

export const flag = (reader: Reader, path: Path, otherwise: boolean): boolean => {
  const value = at(reader, path)
  if (value === undefined || value === null) return otherwise
  if (typeof value === 'boolean') return value
  wrong(reader, path, 'true or false')
  return otherwise
}

export const whole = (reader: Reader, path: Path, range: { least: number; most: number; otherwise: number }): number => {
  const value = at(reader, path)
  if (value === undefined || value === null) return range.otherwise
  if (typeof value === 'number' && Number.isInteger(value) && value >= range.least && value <= range.most) return value
  blame(reader, path, `${pathText(path)} must be a whole number from ${range.least} to ${range.most}`)
  return range.otherwise
}

/** Milliseconds. */
export const duration = (reader: Reader, path: Path, range: { leastMs: number; mostMs: number; otherwiseMs: number }): number => {
  const value = at(reader, path)
  if (value === undefined || value === null) return range.otherwiseMs
  const parsed = typeof value === 'string' ? parseDuration(value) : { ok: false as const, problem: 'is not a duration' }
  if (!parsed.ok) blame(reader, path, `${pathText(path)} is no duration`, 'Write a number and a unit, such as 30s, 3m or 1h')
  else if (parsed.milliseconds >= range.leastMs && parsed.milliseconds <= range.mostMs) return parsed.milliseconds
  else blame(reader, path, `${pathText(path)} must be from ${range.leastMs / 1000} s to ${range.mostMs / 1000} s`)
  return range.otherwiseMs
}

export const oneOf = <T extends string>(reader: Reader, path: Path, words: readonly T[], otherwise: T): T => {
  const value = at(reader, path)
  if (value === undefined || value === null) return otherwise
  const found = words.find((one) => one === value)
  if (found !== undefined) return found
  blame(reader, path, `${pathText(path)} must be one of ${words.join(', ')}`)
  return otherwise
}

/** Missing and null give an empty list. */
export const texts = (reader: Reader, path: Path): string[] => {
  const value = at(reader, path)
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) {
    wrong(reader, path, 'a list of texts')
    return []
  }
  return value.flatMap((_, index) => text(reader, [...path, index], 'Write a text, or take the entry out') ?? [])
}

/** The entries of a list, by index; null: it is missing, null or no list, and a fault says so. */
export const listAt = (reader: Reader, path: Path, need: string): Json[] | null => {
  const value = at(reader, path)
  if (Array.isArray(value)) return value
  if (value === undefined) missing(reader, path, need)
  else blame(reader, path, `${pathText(path)} must be a list, and is ${kindOf(value)}`, need)
  return null
}
