/** Checks a Compose file against the published schema, and says in plain words, at its place, what does not fit. */
import { Ajv, type ErrorObject } from 'ajv'
import type { Document, JsonMap, Path } from '../model/prune/document.ts'
import { kindOf, pathText, valueAt } from '../model/prune/document.ts'
import { faultAt, type Fault } from '../model/prune/fault.ts'
import { goDuration } from '../model/prune/compose/units.ts'
import { nearest } from '../lib/nearest.ts'
import published from './compose-schema/config_schema_v3.9.json' with { type: 'json' }

/** Without the identifiers of the draft that it was written for: nothing refers to them, and later drafts spell them otherwise. */
const modern = (schema: unknown, key = ''): unknown => {
  if (Array.isArray(schema)) return schema.map((one) => modern(one))
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).filter(
    ([name, value]) => key === 'properties' || !['id', '$schema'].includes(name) || typeof value !== 'string',
  )
  return Object.fromEntries(entries.map(([name, value]) => [name, modern(value, name)]))
}

const ajv = new Ajv({
  allErrors: true,
  strict: false,
  verbose: true,
  formats: { duration: (text) => goDuration(text) !== null, ports: true, expose: true },
})
const check = ajv.compile(modern(published) as object)

/** The formats that the schema holds for: newer ones add keys, which it then does not know. */
const versions: ReadonlySet<string> = new Set(['3', ...Array.from({ length: 14 }, (_, minor) => `3.${minor}`)])

/** `value` is the document's value with variables replaced. Places that `refused` names are not reported again. */
export const checkCompose = (document: Document, value: JsonMap, refused: readonly Path[]): Fault[] => {
  const version = value['version']
  if (version !== undefined && typeof version === 'string' && !versions.has(version)) {
    return [faultAt(document.spotOf(['version']), `format ${version} is not known`, 'Write version: "3.8", or leave it out')]
  }
  if (check({ version: '3.9', ...value })) return []
  const known = new Set(refused.map((one) => JSON.stringify(one)))
  return specific(check.errors ?? []).flatMap((error) => {
    const path = pathOf(error, value)
    return known.has(JSON.stringify(path)) ? [] : [faultOfError(document, value, path, error)]
  })
}

const pathOf = (error: ErrorObject, value: JsonMap): Path => {
  const path: (string | number)[] = []
  for (const part of error.instancePath.split('/').slice(1)) {
    const step = part.replaceAll('~1', '/').replaceAll('~0', '~')
    path.push(Array.isArray(valueAt(value, path)) ? Number(step) : step)
  }
  if (error.keyword === 'additionalProperties') path.push(String(error.params['additionalProperty']))
  return path
}

/** Of the branches of a choice, the one that went furthest says what is wrong; where all fail at once, the choice itself does. */
const specific = (errors: readonly ErrorObject[]): ErrorObject[] => {
  const choices = errors.filter((one) => one.keyword === 'oneOf')
  return errors.filter((one) => {
    const inside = choices.filter(
      (choice) => one !== choice && one.schemaPath.startsWith(`${choice.schemaPath}/`) && one.instancePath.startsWith(choice.instancePath),
    )
    if (one.keyword === 'oneOf') return !errors.some((other) => other !== one && deeper(other, one))
    const sameAsChoice = one.keyword === 'type' && choices.some((choice) => choice.instancePath === one.instancePath)
    return !sameAsChoice && inside.every((choice) => deeper(one, choice))
  })
}

const deeper = (one: ErrorObject, choice: ErrorObject): boolean =>
  one.keyword !== 'oneOf' &&
  (one.instancePath.startsWith(`${choice.instancePath}/`) || (one.instancePath === choice.instancePath && one.keyword !== 'type'))

const faultOfError = (document: Document, value: JsonMap, path: Path, error: ErrorObject): Fault => {
  const where = pathText(path)
  const found = valueAt(value, path)
  switch (error.keyword) {
    case 'additionalProperties': {
      const key = String(path.at(-1))
      const known = Object.keys((error.parentSchema?.['properties'] ?? {}) as object)
      if (known.length === 0) return faultAt(document.spotOf(path, 'key'), `"${key}" is no name`, 'Use letters, digits, ".", "_" and "-"')
      const near = nearest(key, known)
      return faultAt(document.spotOf(path, 'key'), `unknown key "${key}"`, near === null ? 'Take it out' : `Did you mean ${near}?`)
    }
    case 'type':
      return faultAt(document.spotOf(path), `${where} must be ${typesText(error.params['type'])}, and is ${kindOf(found)}`)
    case 'oneOf':
      return faultAt(document.spotOf(path), `${where} must be ${choiceText(error.schema)}, and is ${kindOf(found)}`)
    case 'format':
      return faultAt(
        document.spotOf(path),
        `${where} is no ${String(error.params['format'])}`,
        'Write a number and a unit, such as 30s or 1m30s',
      )
    case 'enum':
      return faultAt(document.spotOf(path), `${where} must be one of ${(error.params['allowedValues'] as unknown[]).join(', ')}`)
    case 'uniqueItems':
      return faultAt(document.spotOf(path), `${where} says the same twice`, 'Take one of them out')
    case 'required':
      return faultAt(document.spotOf(path, 'key'), `${where} needs ${String(error.params['missingProperty'])}`)
    default:
      return faultAt(document.spotOf(path), `${where} ${error.message ?? 'does not fit'}`)
  }
}

const words: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  integer: 'a whole number',
  boolean: 'true or false',
  object: 'a mapping',
  array: 'a list',
  null: 'nothing',
}
const typesText = (types: unknown): string =>
  (Array.isArray(types) ? types : [types]).map((one) => words[String(one)] ?? String(one)).join(' or ')

const choiceText = (branches: unknown): string => {
  const texts = (branches as { type?: unknown; $ref?: string }[]).map((one) =>
    one.$ref?.endsWith('list_of_strings') ? 'a list' : typesText(one.type),
  )
  return [...new Set(texts)].join(' or ')
}
