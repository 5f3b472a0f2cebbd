/**
 * YAML as `docker stack deploy` reads it (1.1: `0440` is octal, `<<` merges), and stricter where versions of it differ or a mistake would pass: no
 * duplicate keys, no tags, no `yes` that is a truth value to one program and a word to another, bounded aliases, one document.
 */
import { isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument, type Node, type Pair, type Scalar, type Tags } from 'yaml'
import type { Document, Json, Path } from '../model/prune/document.ts'
import { faultAt, faultOf, type Fault, type Spot } from '../model/prune/fault.ts'

export type ParseResult = { ok: true; document: Document } | { ok: false; faults: Fault[] }

export const longestFileBytes = 4 * 1024 * 1024
const mostAliases = 100
const deepest = 100

/** `file` is what faults call it. An empty file reads as null. */
export const parseYaml = (file: string, source: string): ParseResult => {
  if (Buffer.byteLength(source) > longestFileBytes) {
    return {
      ok: false,
      faults: [
        faultOf(file, `the file is larger than ${longestFileBytes / 1024 / 1024} MiB`, 'Split it, or check that it is the right one'),
      ],
    }
  }
  if (opensTooMuch(source)) return { ok: false, faults: [faultOf(file, 'it is nested too deeply')] }
  try {
    return parse(file, source)
  } catch (error) {
    // The parser recurses: what is nested far too deeply ends its stack rather than in a fault of its own.
    const why = error instanceof RangeError ? 'it is nested too deeply' : error instanceof Error ? error.message : 'unknown'
    return { ok: false, faults: [faultOf(file, `the file can't be read as YAML: ${why}`)] }
  }
}

/** Brackets and "- - -" that no person writes: the parser's time would grow with their square. */
const opensTooMuch = (source: string): boolean => {
  let depth = 0
  for (const char of source) {
    if (char === '[' || char === '{') depth += 1
    else if ((char === ']' || char === '}') && depth > 0) depth -= 1
    if (depth > 1000) return true
  }
  return /(?:[-?] ){200}/.test(source)
}

/** Without what Compose never means: base-60 numbers (`22:30`), dates, binary data, sets. */
const plainTags = (tags: Tags): Tags =>
  tags.filter(
    (one) =>
      typeof one === 'string' || !(one.tag.match(/:(timestamp|binary|omap|pairs|set)$/) || ('format' in one && one.format === 'TIME')),
  )

const parse = (file: string, source: string): ParseResult => {
  const lines = new LineCounter()
  const parsed = parseDocument(source, {
    version: '1.1',
    customTags: plainTags,
    lineCounter: lines,
    prettyErrors: false,
    // Found in the walk: the parser compares each key with each.
    uniqueKeys: false,
    strict: true,
  })
  const spot = (offset: number): Spot => {
    const { line, col } = lines.linePos(offset)
    return { file, line: Math.max(1, line), column: Math.max(1, col) }
  }
  // One mistake of syntax makes many, and the first says the most.
  const faults: Fault[] = [...parsed.errors, ...parsed.warnings].slice(0, 20).map((one) => {
    const [message = ''] = one.message.split('\n')
    return faultAt(
      spot(one.pos[0]),
      message.replace(/^./, (first) => first.toLowerCase()),
    )
  })
  if (faults.length > 0) return { ok: false, faults }
  const spots = new Map<string, { key: number; value: number }>()
  walk(parsed.contents, [], { spots, spot, faults })
  if (faults.length > 0) return { ok: false, faults }
  let value: Json
  try {
    value = parsed.toJS({ maxAliasCount: mostAliases }) as Json
  } catch {
    return {
      ok: false,
      faults: [faultOf(file, 'aliases (*name) make far more of this file than is written', 'Write it out, or use fewer')],
    }
  }
  const spotOf: Document['spotOf'] = (path, of = 'value') => {
    for (let length = path.length; length >= 0; length -= 1) {
      const found = spots.get(JSON.stringify(path.slice(0, length)))
      // Around what is merged in, its key tells more than its first value.
      if (found) return spot(length === path.length && of === 'value' ? found.value : found.key)
    }
    return { file, line: 1, column: 1 }
  }
  return { ok: true, document: { file, value: value ?? null, spotOf } }
}

interface Walk {
  spots: Map<string, { key: number; value: number }>
  spot: (offset: number) => Spot
  faults: Fault[]
}

const startOf = (node: unknown): number => (node as Node | null)?.range?.[0] ?? 0

const walk = (node: unknown, path: Path, to: Walk): void => {
  if (!to.spots.has(JSON.stringify(path))) to.spots.set(JSON.stringify(path), { key: startOf(node), value: startOf(node) })
  if (path.length > deepest) {
    to.faults.push(faultAt(to.spot(startOf(node)), 'this is nested too deeply'))
  } else if (isMap(node)) {
    const seen = new Set<string>()
    for (const pair of node.items) walkPair(pair, path, seen, to)
  } else if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) walk(item, [...path, index], to)
  } else if (isScalar(node)) {
    // A lone "." is a number by the letter of YAML 1.1, and a text to everybody who reads or writes Compose files.
    if (typeof node.value === 'number' && node.source !== undefined && /^[-+._]+$/.test(node.source)) node.value = node.source
    const problem = scalarProblem(node)
    if (problem) to.faults.push(faultAt(to.spot(startOf(node)), problem.message, problem.fix))
  }
}

const walkPair = (pair: Pair, path: Path, seen: Set<string>, to: Walk): void => {
  const key = pair.key
  const at = startOf(key)
  if (isAlias(key) || !isScalar(key)) return void to.faults.push(faultAt(to.spot(at), 'a key must be a plain text'))
  if (key.value === '<<' || typeof key.value === 'symbol') return walk(pair.value, [...path, '<<'], to)
  if (typeof key.value !== 'string')
    return void to.faults.push(faultAt(to.spot(at), `the key ${key.source ?? ''} is no text`, 'Put it in quotes'))
  if (key.value === '__proto__') return void to.faults.push(faultAt(to.spot(at), 'the key __proto__ is not taken'))
  if (seen.has(key.value)) to.faults.push(faultAt(to.spot(at), 'this key is there twice', 'Keep one of them'))
  seen.add(key.value)
  const value = pair.value === null || (isScalar(pair.value) && pair.value.value === null) ? at : startOf(pair.value)
  to.spots.set(JSON.stringify([...path, key.value]), { key: at, value })
  walk(pair.value, [...path, key.value], to)
}

const scalarProblem = (node: Scalar): { message: string; fix: string } | null => {
  const source = node.source ?? ''
  if (typeof node.value === 'boolean' && !/^(?:true|false)$/i.test(source)) {
    return {
      message: `"${source}" is a truth value to some readers of YAML and a word to others`,
      fix: 'Write true or false, or put it in quotes',
    }
  }
  if (typeof node.value !== 'number') return null
  const exact = Number.isInteger(node.value) ? Number.isSafeInteger(node.value) : Number.isFinite(node.value)
  if (exact && !/^[-+]?[\d.]+e/i.test(source)) return null
  return { message: `${source} is a number that can't be kept exactly`, fix: 'Put it in quotes' }
}
