import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  carriedBy,
  foldInto,
  liveClaims,
  objectsAtStart,
  withObjects,
  withoutClaims,
  type Claim,
  type ClaimSource,
  type HeldClaim,
} from '../../../src/model/prune/claims.ts'
import { currentOf, tooMany } from '../../../src/model/prune/history.ts'
import { canonical, type Json } from '../../../src/model/prune/canonical.ts'
import { nameProblems } from '../../../src/model/prune/twins.ts'

const claim = (name: string): Claim => ({ id: name, kind: 'config', name })
const names = (claims: readonly Claim[]): string[] => claims.map((one) => one.name).toSorted()

/** What deploys and verified deletions do to claims, as the records keep it. */
const next = (sources: readonly ClaimSource[], folded: readonly HeldClaim[], declared: readonly string[]): ClaimSource => {
  const live = liveClaims(sources, folded)
  const claims = declared.map(claim)
  return { number: (sources.at(-1)?.number ?? 0) + 1, claims, carried: carriedBy(claims, live), objects: objectsAtStart(claims, live) }
}

describe('claims', () => {
  it('of a new revision are those it declares and all that live (prune 7.1)', () => {
    const first = next([], [], ['a', 'b'])
    const second = next([{ ...first, objects: withObjects(first.objects, new Map([['a', 'id-a']])) }], [], ['b', 'c'])
    expect(names(second.claims)).toEqual(['b', 'c'])
    expect(second.carried).toEqual([{ ...claim('a'), object: 'id-a' }])
  })

  it('end only when they are taken out after a verified deletion, and then in no older revision again', () => {
    const first = next([], [], ['a', 'b'])
    const second = next([first], [], ['b'])
    expect(names(liveClaims([first, second], []))).toEqual(['a', 'b'])
    const shrunk = { ...second, objects: withoutClaims(second.objects, new Set(['a'])) }
    expect(names(liveClaims([first, shrunk], []))).toEqual(['b'])
    expect(names(next([first, shrunk], [], ['b']).carried)).toEqual([])
  })

  it('take in no object that they do not name', () => {
    expect(withObjects({ a: '' }, new Map([['x', '1']]))).toEqual({ a: '' })
  })

  const steps = fc.array(
    fc.oneof(
      fc.record({
        do: fc.constant('deploy' as const),
        declared: fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e'), { minLength: 1 }),
      }),
      fc.record({ do: fc.constant('delete' as const), name: fc.constantFrom('a', 'b', 'c', 'd', 'e') }),
      fc.record({ do: fc.constant('trim' as const), keep: fc.integer({ min: 1, max: 3 }) }),
    ),
    { maxLength: 30 },
  )
  /** @returns after every step what there is by the records, and what there is */
  const play = (run: typeof steps extends fc.Arbitrary<infer S> ? S : never, fold: typeof foldInto): [string[], string[]][] => {
    let sources: ClaimSource[] = []
    let folded: HeldClaim[] = []
    let exists = new Set<string>()
    let declared = new Set<string>()
    return run.map((step): [string[], string[]] => {
      const newest = sources.at(-1)
      if (step.do === 'deploy') {
        sources.push(next(sources, folded, step.declared))
        declared = new Set(step.declared)
        exists = new Set([...exists, ...declared])
      } else if (step.do === 'delete' && newest && exists.has(step.name) && !declared.has(step.name)) {
        exists.delete(step.name)
        sources[sources.length - 1] = { ...newest, objects: withoutClaims(newest.objects, new Set([step.name])) }
      } else if (step.do === 'trim') {
        const old = tooMany(
          sources.map((one) => ({ ...one, state: 'committed' as const })),
          step.keep,
        )
        for (const one of old) {
          folded = fold(folded, one)
          sources = sources.filter(({ number }) => number !== one.number)
        }
      }
      return [names(liveClaims(sources, folded)), [...exists].toSorted()]
    })
  }

  it('cover exactly what exists after any order of deploys, deletions and trims (prune R71)', () => {
    fc.assert(
      fc.property(steps, (run) => {
        for (const [claimed, exists] of play(run, foldInto)) expect(claimed).toEqual(exists)
      }),
    )
  })

  it('are kept by the fold also where no later revision carries them (prune R71), which a fold that forgets would lose', () => {
    const old: ClaimSource = { number: 1, claims: [claim('a'), claim('b')], carried: [], objects: { a: 'id-a', b: '' } }
    const current: ClaimSource = { number: 2, claims: [claim('b')], carried: [], objects: { b: '' } }
    expect(names(liveClaims([current], foldInto([], old)))).toEqual(['a', 'b'])
    expect(names(liveClaims([current], []))).toEqual(['b'])
  })
})

describe('history', () => {
  const committed = (...numbers: number[]) => numbers.map((number) => ({ number, state: 'committed' as const }))

  it('keeps the newest ones, and goes oldest first', () => {
    expect(tooMany(committed(1, 2, 3, 4), 2).map((one) => one.number)).toEqual([1, 2])
    expect(tooMany(committed(1, 2, 3, 4), 0)).toEqual([])
  })

  it('never gives up the current one, nor an intent after it (prune R39)', () => {
    const all = [...committed(1, 2), { number: 3, state: 'intent' as const }]
    expect(currentOf(all)?.number).toBe(2)
    expect(tooMany(all, 1).map((one) => one.number)).toEqual([1])
    expect(tooMany([{ number: 1, state: 'intent' as const }], 1)).toEqual([])
  })
})

describe('canonical JSON', () => {
  it('is one text whatever the order of keys, and reads back as the value (prune 7.1)', () => {
    const leaf = fc.oneof(
      fc.string({ unit: 'grapheme' }).map((text) => text.toWellFormed()),
      fc.maxSafeInteger(),
      fc.boolean(),
      fc.constant(null),
    )
    const value = fc.letrec<{ json: Json }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.array(tie('json'), { maxLength: 4 }),
        fc.dictionary(
          fc.string({ maxLength: 5 }).map((text) => text.toWellFormed()),
          tie('json'),
          { maxKeys: 4 },
        ),
      ),
    })).json
    const reversed = (json: Json): Json =>
      Array.isArray(json)
        ? json.map(reversed)
        : json !== null && typeof json === 'object'
          ? Object.fromEntries(
              Object.entries(json)
                .toReversed()
                .map(([key, one]: [string, Json]) => [key, reversed(one)]),
            )
          : json
    fc.assert(
      fc.property(value, (json) => {
        const text = canonical(json)
        expect(canonical(reversed(json))).toBe(text)
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(json)))
      }),
    )
  })

  it.each([1.5, Number.NaN, Infinity, -0, 2 ** 60, '\ud800', { a: undefined }])('refuses %s, which has no one text', (value) => {
    expect(() => canonical(value as Json)).toThrow('signed')
  })
})

describe('names on a Swarm', () => {
  const none = { planned: [], releases: [], present: [] }

  it('of releases that differ in case only are refused, also against what is on the Swarm (prune R80)', () => {
    expect(nameProblems({ ...none, release: 'web', releases: ['Web'] })).toHaveLength(1)
    expect(nameProblems({ ...none, release: 'web', releases: ['web', 'api'] })).toEqual([])
  })

  it.each(['config', 'secret', 'service', 'network'] as const)(
    'of a %s that differ in case only are refused, planned or present (prune R80)',
    (kind) => {
      const planned = [{ kind, name: 'web_a' }]
      expect(nameProblems({ ...none, release: 'web', planned, present: [{ kind, name: 'Web_A' }] })).toHaveLength(1)
      expect(nameProblems({ ...none, release: 'web', planned: [...planned, { kind, name: 'web_A' }] })).toHaveLength(2)
      expect(nameProblems({ ...none, release: 'web', planned, present: planned })).toEqual([])
    },
  )

  it('of different kinds, and of volumes, are nobody’s twins', () => {
    const planned = [{ kind: 'config' as const, name: 'web_a' }]
    expect(nameProblems({ ...none, release: 'web', planned, present: [{ kind: 'secret', name: 'Web_A' }] })).toEqual([])
    const volumes = [
      { kind: 'volume' as const, name: 'web_a' },
      { kind: 'volume' as const, name: 'web_A' },
    ]
    expect(nameProblems({ ...none, release: 'web', planned: volumes })).toEqual([])
  })

  it('that are too long are refused before any change, of objects and of the release (prune R79)', () => {
    expect(nameProblems({ ...none, release: 'web', planned: [{ kind: 'config', name: `web_${'x'.repeat(61)}` }] })).toHaveLength(1)
    expect(nameProblems({ ...none, release: 'web', planned: [{ kind: 'config', name: `web_${'x'.repeat(60)}` }] })).toEqual([])
    expect(nameProblems({ ...none, release: 'w'.repeat(63) })).toEqual([])
    expect(nameProblems({ ...none, release: 'w'.repeat(64) })).toHaveLength(1)
  })
})
