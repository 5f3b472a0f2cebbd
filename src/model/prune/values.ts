/** Values files: flat YAML, one name and one plain value a line; a later file wins. They are all that `${VAR}` is taken from. */
import { isMap, kindOf, type Document } from './document.ts'
import { faultAt, type Fault } from './fault.ts'
import type { Values } from './interpolate.ts'

export type ValuesResult = { ok: true; values: Values } | { ok: false; faults: Fault[] }

/** An empty file has no values. Null is refused: whether it means "" or "not set" nobody can tell. */
export const mergeValues = (documents: readonly Document[]): ValuesResult => {
  const values = new Map<string, string>()
  const faults: Fault[] = []
  for (const document of documents) {
    if (document.value === null) continue
    if (!isMap(document.value)) {
      faults.push(
        faultAt(document.spotOf([]), `a values file must be a mapping, and is ${kindOf(document.value)}`, 'Write NAME: value, one a line'),
      )
      continue
    }
    for (const [name, value] of Object.entries(document.value)) {
      const key = document.spotOf([name], 'key')
      if (!/^[A-Za-z_]\w*$/.test(name)) {
        faults.push(faultAt(key, `"${name}" is no name of a variable`, 'Use letters, digits and "_", not beginning with a digit'))
      } else if (value === null || typeof value === 'object') {
        const fix =
          value === null ? 'Write "" for an empty text, or take the line out' : 'Values are flat: write a text, a number or a truth value'
        faults.push(faultAt(key, `the value of ${name} is ${kindOf(value)}`, fix))
      } else values.set(name, String(value))
    }
  }
  return faults.length > 0 ? { ok: false, faults } : { ok: true, values }
}
