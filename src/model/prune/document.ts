import type { Spot } from './fault.ts'

export type Json = null | boolean | number | string | Json[] | JsonMap
export interface JsonMap {
  [key: string]: Json
}

/** From the top of a document to one of its values: keys of mappings, indexes of lists. */
export type Path = readonly (string | number)[]

/** A parsed file whose values still know where they stand. */
export interface Document {
  readonly file: string
  readonly value: Json
  /** Of the value at the path, or of its key; where the path is not written down itself (merged in, made up), of the nearest thing around it. */
  spotOf(path: Path, of?: 'key' | 'value'): Spot
}

export const isMap = (value: Json | undefined): value is JsonMap => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Undefined: there is nothing at that path. */
export const valueAt = (value: Json, path: Path): Json | undefined => {
  let at: Json | undefined = value
  for (const step of path) {
    if (Array.isArray(at)) at = typeof step === 'number' ? at[step] : undefined
    else if (isMap(at) && Object.hasOwn(at, step)) at = at[step]
    else return undefined
  }
  return at
}

/** `services.web.ports[0]`, for people. */
export const pathText = (path: Path): string =>
  path.map((step, at) => (typeof step === 'number' ? `[${step}]` : at === 0 ? step : `.${step}`)).join('')

/** What a value is, for people. */
export const kindOf = (value: Json | undefined): string => {
  if (value === null || value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object') return 'a mapping'
  return typeof value === 'string' ? 'a text' : typeof value === 'number' ? 'a number' : 'a truth value'
}
