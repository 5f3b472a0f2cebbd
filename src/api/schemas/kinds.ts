/** Building blocks of the schemas. Request objects are closed: a field that nobody reads is an error, never ignored. */
import { Type, type Static, type TObject, type TProperties, type TSchema } from 'typebox'

/** In the words of an error message, where the keywords of the schema say it badly. */
export const expected = 'x-expected'
/** A number that JSON can write and nobody can count (1e999) is read as null (leases R14). */
export const nonFiniteIsNull = 'x-non-finite-is-null'

interface Options {
  description?: string
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  'x-expected'?: string
  'x-non-finite-is-null'?: true
}

export const text = (options: Options = {}) => Type.String({ ...options })
export const textOrNull = (options: Options = {}) => Type.Unsafe<string | null>({ type: ['string', 'null'], ...options })
export const whole = (options: { minimum?: number; maximum?: number; default?: number; description?: string } = {}) => Type.Integer(options)
export const numberOrNull = (options: Options = {}) => Type.Unsafe<number | null>({ type: ['number', 'null'], ...options })
export const wholeOrNull = (options: Options = {}) => Type.Unsafe<number | null>({ type: ['integer', 'null'], ...options })
export const flag = (options: { description?: string } = {}) => Type.Boolean(options)
export const flagOrNull = (options: Options = {}) => Type.Unsafe<boolean | null>({ type: ['boolean', 'null'], ...options })
export const oneOf = <const T extends string>(values: readonly T[], options: Options = {}) =>
  Type.Unsafe<T>({ type: 'string', enum: [...values], ...options })

/** ISO 8601 UTC with milliseconds. */
export const time = () => Type.String({ format: 'date-time' })
export const timeOrNull = () => Type.Unsafe<string | null>({ type: ['string', 'null'], format: 'date-time' })

export const texts = (options: Options = {}) =>
  Type.Unsafe<Record<string, string>>({ type: 'object', additionalProperties: { type: 'string' }, ...options })
export const textsOrNull = (options: Options = {}) =>
  Type.Unsafe<Record<string, string> | null>({ type: ['object', 'null'], additionalProperties: { type: 'string' }, ...options })
export const numbers = () => Type.Unsafe<Record<string, number>>({ type: 'object', additionalProperties: { type: 'number' } })
export const anything = (options: Options = {}) =>
  Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true, ...options })
export const anythingOrNull = (options: Options = {}) =>
  Type.Unsafe<Record<string, unknown> | null>({ type: ['object', 'null'], additionalProperties: true, ...options })

export const may = <T extends TSchema>(schema: T) => Type.Optional(schema)

/** A request's body, query or path. */
export const closed = <P extends TProperties>(properties: P): TObject<P> => Type.Object(properties, { additionalProperties: false })
export const nothing = closed({})

/** A component of the document, under its name. */
export const component = <P extends TProperties>(id: string, properties: P, description: string): TObject<P> =>
  Type.Object(properties, { $id: id, additionalProperties: false, description })

/** A reference to a component: what is written there and in `/openapi.json` once. */
export const ref = <T extends TSchema>(schema: T) => Type.Unsafe<Static<T>>({ $ref: `${(schema as { $id?: string }).$id}#` })

/** An answer's body. */
export const answer = <P extends TProperties>(description: string, properties: P): TObject<P> => Type.Object(properties, { description })

/** Null is as good as missing: both give the default (decisions, Defaults). */
export const withoutNulls = <T extends object>(body: T): { [K in keyof T]: Exclude<T[K], null> } =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)) as { [K in keyof T]: Exclude<T[K], null> }

/** Which filters could not be answered for a row; there only in a list that was filtered, while it says something. */
export const unknowns = () =>
  may(Type.Array(text(), { description: 'Which of the filters that were asked can not be answered for it: owner, kind, label.' }))
/** Beside a filtered list: unknown is not no. */
export const unknownCount = () => whole({ description: 'How many of these are shown because a filter can not be answered for them.' })
export const countUnknown = (rows: readonly { unknown?: string[] }[]): number => rows.filter((row) => row.unknown !== undefined).length

/** The filters of reports: what is shown, never what is deleted. */
export const reportFilters = {
  owner: may(text({ minLength: 1, description: 'Only of this owner.' })),
  kind: may(text({ minLength: 1, description: 'Only about this kind of resource.' })),
  label: may(text({ minLength: 1, description: 'Only with this label: `key=value`.' })),
  olderThanSeconds: may(whole({ minimum: 0, maximum: 3_155_760_000, description: 'Only what is at least so old.' })),
}

export const limit = () => may(whole({ minimum: 1, maximum: 500, default: 100, description: 'At most so many.' }))
export const defaultLimit = 100
