/** Whatever stands in the files, the answer is objects or faults with places: nothing throws, and nothing hangs. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isMap, type Json } from '../../src/model/prune/document.ts'
import { readAppSet } from '../../src/model/prune/app-set.ts'
import type { Fault } from '../../src/model/prune/fault.ts'
import { readReleaseFile } from '../../src/model/prune/release-file.ts'
import { parseYaml } from '../../src/prune/yaml.ts'
import { parsed, render } from '../support/releases.ts'

const full = parsed(readFileSync(join(import.meta.dirname, 'fixtures/full/docker-compose.yml'), 'utf8')).value

/** Every place of a value. */
const places = (value: Json, path: (string | number)[] = []): (string | number)[][] => {
  const inner = Array.isArray(value) ? [...value.entries()] : isMap(value) ? Object.entries(value) : []
  return [path, ...inner.flatMap(([key, one]) => places(one, [...path, key]))]
}
const all = places(full).slice(1)

const put = (value: Json, [step, ...rest]: readonly (string | number)[], other: Json): Json => {
  if (step === undefined) return other
  if (Array.isArray(value)) return value.map((one, index) => (index === step ? put(one, rest, other) : one))
  return isMap(value) ? { ...value, [step]: put(value[step] ?? null, rest, other) } : other
}

const anything: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(
    null,
    true,
    0,
    -1,
    0.5,
    '',
    'x',
    '$',
    '${',
    '1s',
    '-1',
    ':',
    'a:b:c:d',
    '=',
    '/',
    [],
    {},
    [null],
    [[]],
    [{}],
    { x: null },
    ['a', 'a'],
    { constructor: 'x' },
    { toString: 1 },
  ),
  fc.string({ maxLength: 12 }),
)

const placed = (faults: readonly Fault[]): boolean =>
  faults.length > 0 && faults.every((one) => one.line >= 1 && one.column >= 1 && one.message !== '')

describe('files that nobody should have written', () => {
  it('a Compose file with anything anywhere is rendered or refused', async () => {
    const files = { 'c.txt': 'c', 's.txt': 's', 'e.env': 'A=1' }
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom(...all), anything), { minLength: 1, maxLength: 3 }), async (changes) => {
        const text = JSON.stringify(changes.reduce((value, [path, other]) => put(value, path, other), full))
        const result = await render([text, text], { files })
        expect(result.ok || placed(result.faults)).toBe(true)
      }),
      { numRuns: 200 },
    )
  }, 120_000)

  it('any text is a document or refused, and so is what is read from it', () => {
    const words = fc.constantFrom(
      'applications',
      'releases',
      ':',
      '- ',
      '\n',
      '  ',
      'name',
      '[',
      ']',
      '{',
      '}',
      '&a ',
      '*a',
      '!x ',
      '"',
      "'",
      '|',
      '>',
      '#',
      '?',
      '<<',
      '---',
      '\t',
      'x',
      '1',
      'null',
      '%',
    )
    fc.assert(
      fc.property(fc.array(words, { maxLength: 30 }), (parts) => {
        const result = parseYaml('f', parts.join(''))
        if (!result.ok) return placed(result.faults)
        const [set, releases] = [readAppSet(result.document), readReleaseFile(result.document, 'f')]
        return (set.ok || placed(set.faults)) && (releases.ok || placed(releases.faults))
      }),
      { numRuns: 500 },
    )
  }, 60_000)
})
