/** Checks requests against their schemas, and says in words what is wrong and what would be right. */
import { Compile } from 'typebox/compile'
import type { TSchema } from 'typebox'
import { LeaseholdError } from '../model/errors.ts'
import { explain, type Part, type Violation } from './explain.ts'
import { nonFiniteIsNull } from './schemas/kinds.ts'

interface Shape {
  type?: string | string[]
  properties?: Record<string, Record<string, unknown>>
}

const asNumber = (value: string): unknown => (/^-?\d{1,15}$/.test(value) ? Number(value) : value)
const asFlag = (value: string): unknown => (value === 'true' ? true : value === 'false' ? false : value)

/** A query has only texts: those that stand for numbers, flags and lists are read as such, and nothing else is. */
const readQuery = (shape: Shape, query: Record<string, unknown>): Record<string, unknown> => {
  const read: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(query)) {
    const type = Object.hasOwn(shape.properties ?? {}, name) ? shape.properties?.[name]?.['type'] : undefined
    if (type === 'array') read[name] = [value].flat().flatMap((one) => String(one).split(','))
    else if (typeof value === 'string' && type === 'integer') read[name] = asNumber(value)
    else if (typeof value === 'string' && type === 'boolean') read[name] = asFlag(value)
    else read[name] = value
  }
  return read
}

const finite = (names: readonly string[], body: unknown): unknown => {
  if (names.length === 0 || typeof body !== 'object' || body === null) return body
  const record = body as Record<string, unknown>
  const wrong = names.filter((name) => typeof record[name] === 'number' && !Number.isFinite(record[name]))
  return wrong.length === 0 ? body : { ...record, ...Object.fromEntries(wrong.map((name) => [name, null])) }
}

const parts: Record<string, Part> = { body: 'body', querystring: 'query', params: 'path', headers: 'headers' }

export interface RouteSchema {
  schema: unknown
  httpPart?: string | undefined
}

/** For Fastify: compiled once per schema, at start. A body that is missing is an empty one. */
export const validatorCompiler = ({ schema, httpPart }: RouteSchema) => {
  const shape = schema as Shape
  const part = parts[httpPart ?? 'body'] ?? 'body'
  const compiled = Compile(schema as TSchema)
  const lenient = Object.entries(shape.properties ?? {}).flatMap(([name, property]) => (property[nonFiniteIsNull] === true ? [name] : []))
  return (given: unknown): { value: unknown } | { error: LeaseholdError } => {
    const value = part === 'query' ? readQuery(shape, (given ?? {}) as Record<string, unknown>) : finite(lenient, given ?? {})
    if (compiled.Check(value)) return { value }
    return { error: new LeaseholdError('bad_request', explain(part, compiled.Errors(value) as unknown as Violation[], value, shape)) }
  }
}
