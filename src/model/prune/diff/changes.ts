import { redact } from '../../../lib/redact.ts'
import { isMap, type Json, type JsonMap } from '../document.ts'

/** One field that differs. Null: it is not there. Values that look like secrets are masked. */
export interface Change {
  field: string
  from: string | null
  to: string | null
}

const hushed = /pass|secret|token|credential|private|api_?key|auth|_key$|^key$|dsn|salt/i
const longest = 200

/** Every leaf that differs, by the path to it, in order. */
export const changesBetween = (from: Json | undefined, to: Json | undefined, path: readonly string[] = []): Change[] => {
  if (isMap(from) || isMap(to)) {
    const before: JsonMap = isMap(from) ? from : {}
    const after: JsonMap = isMap(to) ? to : {}
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].toSorted()
    return keys.flatMap((key) => changesBetween(before[key], after[key], [...path, key]))
  }
  if (JSON.stringify(from) === JSON.stringify(to)) return []
  return [{ field: fieldName(path), from: shown(from, path), to: shown(to, path) }]
}

/** As a person calls it: the nesting of the Engine's API says nothing. */
const fieldName = (path: readonly string[]): string =>
  path.filter((step) => step !== 'TaskTemplate' && step !== 'ContainerSpec' && step !== 'there').join('.')

const shown = (value: Json | undefined, path: readonly string[]): string | null => {
  if (value === undefined) return null
  if (path.at(-1) === 'there') return 'there'
  const inEnvironment = path.includes('Env')
  if ((inEnvironment || path.includes('Options')) && hushed.test(path.at(-1) ?? '')) return '***'
  const text = redact(typeof value === 'string' ? (inEnvironment ? value.replace(/^=/, '') : value) : JSON.stringify(value))
  return text.length > longest ? `${text.slice(0, longest)}…` : text
}
