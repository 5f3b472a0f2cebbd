import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LeaseholdError } from '../../src/model/errors.ts'
import { isInstallationId, isLeaseId, isRef, isRequestKey } from '../../src/model/ids.ts'
import { brokeredLabels, checkUserLabels, labelValue, reservedKeys } from '../../src/model/labels.ts'
import { inventSlug, slugify, withSuffix } from '../../src/model/slug.ts'
import { hex, letterFirst } from '../../src/lib/ids.ts'
import { t0 } from './arbitraries.ts'

const anyText = fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), fc.string({ maxLength: 200 }))

describe('slugs (leases R1)', () => {
  it('are lower case, [a-z0-9] with single dashes between, at most 41 characters, or nothing', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const slug = slugify(text)
        if (slug === null) {
          expect(text.toLowerCase()).not.toMatch(/[a-z0-9]/)
          return
        }
        expect(slug).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
        expect(slug.length).toBeLessThanOrEqual(41)
        expect(slugify(slug)).toBe(slug)
      }),
    )
  })

  it.each([
    ['Web Server #1', 'web-server-1'],
    ['--a__b--', 'a-b'],
    ['ÄÖÜ', null],
    ['', null],
    ['---', null],
    ['x'.repeat(60), 'x'.repeat(41)],
    [`${'x'.repeat(40)}-yz`, 'x'.repeat(40)],
    ['.PR/1234.', 'pr-1234'],
  ])('%j becomes %j', (text, slug) => {
    expect(slugify(text)).toBe(slug)
  })

  it('an invented one is one already, and is never empty', () => {
    const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })
    fc.assert(
      fc.property(unit, unit, (a, b) => {
        const slug = inventSlug([a, b])
        expect(slug).toMatch(/^[a-z]+-[a-z]+$/)
        expect(slugify(slug)).toBe(slug)
      }),
    )
  })

  it('on a collision four hex digits are added', () => {
    expect(withSuffix('web', 'a1b2')).toBe('web-a1b2')
  })

  it('no slug is ever a lease id: an id and a slug can not be mixed up', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(isLeaseId(slugify(text) ?? '')).toBe(false)
      }),
    )
  })
})

describe('label values (leases 2.3)', () => {
  it('are 1 to 63 of [A-Za-z0-9_.-] that begin and end with a letter or digit', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(labelValue(text)).toMatch(/^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/)
      }),
    )
  })

  it.each([
    [' ann ', 'ann'],
    ['ann@example.com', 'ann_example.com'],
    ['_-.', 'unknown'],
    ['', 'unknown'],
    ['日本', 'unknown'],
    ['a'.repeat(80), 'a'.repeat(63)],
    [`${'a'.repeat(62)}_b`, 'a'.repeat(62)],
    ['.x-y_z.', 'x-y_z'],
  ])('%j becomes %j', (text, value) => {
    expect(labelValue(text)).toBe(value)
  })

  it('a value that is one already stays as it is', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(labelValue(labelValue(text))).toBe(labelValue(text))
      }),
    )
  })
})

describe("a user's labels", () => {
  const refused = (labels: Record<string, string>): string => {
    try {
      checkUserLabels(labels)
      return 'accepted'
    } catch (error) {
      expect(error).toBeInstanceOf(LeaseholdError)
      return (error as LeaseholdError).code
    }
  }

  it.each(reservedKeys.flatMap((key) => [key, key.toUpperCase(), key.replaceAll('_', '.'), key.replaceAll('_', '-'), ` ${key} `]))(
    'the key %j is ours in every spelling: nobody plants a ref (orphans U19)',
    (key) => {
      expect(refused({ [key]: 'x' })).toBe('bad_request')
    },
  )

  it.each(['leasehold_new', 'leasehold.dev/ref', 'Leasehold-Anything', 'leasehold/x'])('so is %j, of which nothing is known yet', (key) => {
    expect(refused({ [key]: 'x' })).toBe('bad_request')
  })

  it.each(['team', 'my-leasehold', 'leaseholder', 'x_leasehold_ref', 'a.b/c-d_e', 'k'.repeat(63)])(
    '%j is taken, with its value unchanged',
    (key) => {
      const labels = { [key]: 'Some value, with anything: in it' }
      expect(checkUserLabels(labels)).toEqual(labels)
    },
  )

  it.each(['', ' ', '-a', 'a b', 'ä', 'k'.repeat(64), 'a\n'])('%j is no key', (key) => {
    expect(refused({ [key]: 'x' })).toBe('bad_request')
  })

  it('takes 32 of them with values up to 256 characters, and no more', () => {
    const many = (count: number): Record<string, string> => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))
    expect(refused(many(32))).toBe('accepted')
    expect(refused(many(33))).toBe('bad_request')
    expect(refused({ k: 'v'.repeat(256) })).toBe('accepted')
    expect(refused({ k: 'v'.repeat(257) })).toBe('bad_request')
  })

  it('never overwrite ours: who owns it and when it ends is ours to say', () => {
    const facts = {
      leaseId: 'lh_0123456789ab',
      slug: 'web',
      owner: 'ann',
      provider: 'process',
      keep: false,
      createdAtMs: t0 + 999,
      expiresAtMs: t0 + 1_800_999,
      ttlSeconds: 5400,
      idleSeconds: 1800,
    }
    const ours = brokeredLabels(facts, {})
    const planted = Object.fromEntries(Object.keys(ours).map((key) => [key, 'planted']))
    expect(brokeredLabels(facts, { ...planted, team: 'x' })).toEqual({ ...ours, team: 'x' })
    expect(ours).toMatchObject({ created_at: String(t0 / 1000), expires_at: String(t0 / 1000 + 1800), lease: 'lh_0123456789ab' })
  })
})

describe('ids', () => {
  it('what the makers make passes, and nothing beside it does', () => {
    expect(isRef(letterFirst(12))).toBe(true)
    expect(isInstallationId(letterFirst(8))).toBe(true)
    expect(isLeaseId(`lh_${hex(6)}`)).toBe(true)
    expect(isRequestKey(`cat_${hex(16)}`)).toBe(true)
  })

  it.each([
    '',
    'r000000abcd',
    'r000000abcd12',
    '0000000abcd1',
    'R000000ABCD1',
    ' r000000abcd1',
    'r000000abcd1\n',
    'r000000abc_1',
    'r00000-abcd1',
  ])('%j is no ref (case B4, K2)', (text) => {
    expect(isRef(text)).toBe(false)
    expect(isRef('r000000abcd1')).toBe(true)
  })

  it.each(['lh_0123456789a', 'lh_0123456789abc', 'lh_0123456789AB', 'cbx_0123456789ab', 'lh_0123456789ab ', 'lh_0123456789ag'])(
    '%j is no lease id',
    (text) => expect(isLeaseId(text)).toBe(false),
  )

  it.each(['cat_', `cat_${'0'.repeat(31)}`, `cat_${'0'.repeat(33)}`, `cat_${'G'.repeat(32)}`, `dog_${'0'.repeat(32)}`])(
    '%j is no request key',
    (text) => expect(isRequestKey(text)).toBe(false),
  )
})
