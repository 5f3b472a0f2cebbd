import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeMac } from '../../src/engine/keyring.ts'
import { claimedEpoch, formatMac, macText, parseMac, whyNotOurs, type MacClaim } from '../../src/model/mac.ts'

const claim: MacClaim = { installation: 'inst0001', scope: 'machine:0f3a', ref: 'rabcdefghijk', attempt: 'token-1', epoch: 3 }
const key = { id: 'a1b2c3', secret: 's'.repeat(43) }

describe('the keyed tag', () => {
  it('is what every provider takes as a label: at most 63 of a-z, 0-9 and -, with a letter or digit at both ends', () => {
    const longest = makeMac(key, { ...claim, epoch: 999_999_999 })
    expect(longest).toMatch(/^[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$/)
  })

  it('is an HMAC-SHA-256 that anyone with the key can work out', () => {
    // printf '%s' '["leasehold_mac",1,"inst0001","machine:0f3a","rabcdefghijk","token-1",3]' | openssl dgst -sha256 -hmac sssssssssssssssssssssssssssssssssssssssssss
    expect(makeMac(key, claim)).toBe('1-a1b2c3-3-0c7031a961bc0a0c7341840788c2e37313008a99')
  })

  it('covers each of its facts, and the key', () => {
    const right = makeMac(key, claim)
    for (const name of ['installation', 'scope', 'ref', 'attempt'] as const)
      expect(makeMac(key, { ...claim, [name]: `${claim[name]}x` })).not.toBe(right)
    expect(makeMac(key, { ...claim, epoch: 4 }).slice(-40)).not.toBe(right.slice(-40))
    expect(makeMac({ ...key, secret: 't'.repeat(43) }, claim)).not.toBe(right)
  })

  it('no two claims are authenticated by the same text', () => {
    const facts = fc.record({
      installation: fc.string(),
      scope: fc.string(),
      ref: fc.string(),
      attempt: fc.string(),
      epoch: fc.nat(),
    })
    fc.assert(fc.property(facts, facts, (a, b) => (macText(a) === macText(b)) === (JSON.stringify(a) === JSON.stringify(b))))
    expect(macText({ ...claim, scope: 'a', ref: 'bc' })).not.toBe(macText({ ...claim, scope: 'ab', ref: 'c' }))
  })

  it('is read back as it was written, and anything else is none of ours', () => {
    const value = { keyId: 'a1b2c3', epoch: 12, digits: '0'.repeat(40) }
    expect(parseMac(formatMac(value))).toEqual(value)
    const good = formatMac(value)
    for (const bad of [
      '',
      'x',
      good.toUpperCase(),
      ` ${good}`,
      `${good}\n`,
      good.slice(0, -1),
      `${good}0`,
      good.replace('-12-', '-012-'),
      good.replace(/^1/, '2'),
    ])
      expect(parseMac(bad), bad).toBeNull()
    expect([claimedEpoch(good), claimedEpoch('x'), claimedEpoch(null)]).toEqual([12, null, null])
  })

  it('a wrong one, one by an unknown key, and a missing one where one was written speak against it; a missing one that never was does not', () => {
    expect(whyNotOurs({ kind: 'valid', epoch: 3 }, true)).toBeNull()
    expect(whyNotOurs({ kind: 'none' }, false)).toBeNull()
    expect(whyNotOurs({ kind: 'none' }, true)).toMatch(/is gone/)
    for (const written of [true, false]) {
      expect(whyNotOurs({ kind: 'wrong' }, written)).toMatch(/not what the key/)
      expect(whyNotOurs({ kind: 'unknown-key', keyId: 'zzzzzz' }, written)).toMatch(/key zzzzzz/)
    }
  })
})
