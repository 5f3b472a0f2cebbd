/** The forms that several keys of Compose share. The schema has made sure of the types. */
import { isMap, type Json } from '../document.ts'

/** Numbers and the like as Docker prints them. */
export const said = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** `a` or `[a, b]`. */
export const stringList = (value: Json): string[] => (Array.isArray(value) ? value : [value]).map(said)

/** `{a: 1}` or `[a=1]`; what has no value has the given one. */
export const pairs = <Empty>(value: Json, empty: Empty): Record<string, string | Empty> => {
  const entries: [string, string | Empty][] = isMap(value)
    ? Object.entries(value).map(([key, one]) => [key, one === null ? empty : said(one)])
    : (value as Json[]).map((one) => {
        const text = said(one)
        const at = text.indexOf('=')
        return at < 0 ? [text, empty] : [text.slice(0, at), text.slice(at + 1)]
      })
  return Object.fromEntries(entries)
}

/** `{a: 1}`, every value as text; nothing is `""`. */
export const textMap = (value: Json): Record<string, string> => pairs(value, '')

/** Without what is undefined, so that absent stays absent. */
export const compact = <T extends object>(value: { [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as T

/** By the bytes that Go compares: UTF-8, which is the order of code points. */
export const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
