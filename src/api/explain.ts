/** From a violated schema to one sentence: which field, what is wrong with it, and what would be right. */
import { redact } from '../lib/redact.ts'
import { expected } from './schemas/kinds.ts'

export type Part = 'body' | 'query' | 'path' | 'headers'

export interface Violation {
  keyword: string
  instancePath: string
  params: Record<string, unknown>
  message: string
}

interface Node {
  type?: string | string[]
  enum?: unknown[]
  properties?: Record<string, Node>
  additionalProperties?: boolean | Node
  items?: Node
  minimum?: number
  maximum?: number
  [expected]?: string
}

const stepsOf = (path: string): string[] =>
  path
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))

const nodeAt = (shape: Node, steps: readonly string[]): Node | undefined =>
  steps.reduce<Node | undefined>((node, step) => {
    if (!node) return undefined
    if (node.properties && Object.hasOwn(node.properties, step)) return node.properties[step]
    if (node.items) return node.items
    return typeof node.additionalProperties === 'object' ? node.additionalProperties : undefined
  }, shape)

const valueAt = (value: unknown, steps: readonly string[]): unknown =>
  steps.reduce<unknown>(
    (inner, step) => (typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[step] : undefined),
    value,
  )

const longestShown = 60
/** The value as it came, cut short; what looks like a secret is replaced. */
const shown = (value: unknown): string => {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  const written = redact(JSON.stringify(value))
  return written.length > longestShown ? `${written.slice(0, longestShown)}…` : written
}

const typeNames: Record<string, string> = {
  string: 'text',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  object: 'an object',
  array: 'a list',
  null: 'null',
}

const wanted = (node: Node | undefined): string => {
  if (!node) return 'something else'
  if (node[expected] !== undefined) return node[expected]
  if (node.enum) return `one of ${node.enum.join(', ')}`
  if (node.minimum !== undefined && node.maximum !== undefined) return `a whole number from ${node.minimum} to ${node.maximum}`
  return [node.type ?? []]
    .flat()
    .map((type) => typeNames[type] ?? type)
    .join(' or ')
}

const places: Record<Part, string> = { body: 'field', query: 'query parameter', path: 'part of the path', headers: 'header' }

const unknownField = (part: Part, name: string, known: readonly string[]): string => {
  const meant = known.find((one) => one.toLowerCase() === name.toLowerCase())
  const hint =
    meant !== undefined ? `did you mean "${meant}"?` : known.length === 0 ? 'none is taken here' : `known are ${known.join(', ')}`
  return `unknown ${places[part]} ${shown(name)}; ${hint}`
}

/** @param shape the schema that was violated. @param value what came */
export const explain = (part: Part, violations: readonly Violation[], value: unknown, shape: Node): string => {
  const surplus = violations.find((one) => one.keyword === 'additionalProperties' && one.instancePath === '')
  if (surplus)
    return unknownField(
      part,
      String((surplus.params['additionalProperties'] as string[] | undefined)?.[0] ?? ''),
      Object.keys(shape.properties ?? {}),
    )
  const missing = violations.find((one) => one.keyword === 'required')
  if (missing) {
    const [name = ''] = (missing.params['requiredProperties'] as string[] | undefined) ?? []
    return `the ${places[part]} "${name}" is missing; it must be ${wanted(shape.properties?.[name])}`
  }
  const first = violations.find((one) => one.keyword !== 'additionalProperties' && one.keyword !== 'boolean') ?? violations[0]
  const steps = stepsOf(first?.instancePath ?? '')
  if (steps.length === 0)
    return part === 'body'
      ? `the body must be a JSON object, not ${shown(value)}`
      : `the ${part} is not as it should be: ${first?.message ?? 'malformed'}`
  const found = valueAt(value, steps)
  const node = nodeAt(shape, steps)
  // A query parameter that came twice is a list.
  if (part === 'query' && Array.isArray(found)) return `${steps[0]}: came more than once; it must be ${wanted(node)}`
  const name = steps.filter((step) => !/^\d+$/.test(step)).join('.')
  if (first?.keyword === 'minLength' && found === '') return `${name}: must not be empty`
  if (first?.keyword === 'minLength' || first?.keyword === 'maxLength') return `${name}: ${first.message}`
  return `${name}: must be ${wanted(node)}, not ${shown(found)}`
}
