import { describe, expect, it } from 'vitest'
import { eventCodes, eventText, findingCodes, isLasting, type EventCode } from '../../src/model/codes.ts'
import { errorCodes, LeaseholdError } from '../../src/model/errors.ts'

/** A payload that has every field that any code reads, each with `value`. */
const payloadOf = (value: unknown): never => new Proxy({}, { get: () => value }) as never
const codes = Object.keys(eventCodes) as EventCode[]

describe('event texts (orphans R85)', () => {
  it.each(codes)('%s: one line, not empty, begins with a capital, no full stop at the end', (code) => {
    for (const value of ['box-1', '', 3, null, true, false]) {
      const text = eventText(code, payloadOf(value))
      expect(text.trim()).not.toBe('')
      expect(text).not.toMatch(/[\r\n]/)
      if (typeof value === 'string' && value !== '') expect(text).toMatch(/^[A-Z]|^box-1/)
      expect(text).not.toMatch(/undefined|\[object/)
      // orphans R96, R97 give the two texts of a give-up word for word, and those are sentences.
      if (!code.startsWith('terminate.')) expect(text).not.toMatch(/\.$/)
    }
  })

  it.each(codes)('%s stays one line, whatever a provider answered', (code) => {
    for (const value of ['first\nsecond', 'first\r\n\r\nsecond', '\n', 'a\u2028b', 'a\u2029b', 'tab\tand\vmore\fof it', '\u001b[31mred']) {
      const text = eventText(code, payloadOf(value))
      expect(text).not.toMatch(/[\p{Cc}\u2028\u2029]/u)
      expect(text.trim()).not.toBe('')
    }
  })

  it('keeps what was said', () => {
    expect(eventText('lease.failed', { code: 'create_failed', error: 'no room:\n  try elsewhere' })).toBe(
      'Lease failed (create_failed): no room: try elsewhere',
    )
  })

  it('a give-up says what, where, for how long and why, and what is next (orphans R96, R97)', () => {
    const payload = { name: 'calm-otter', id: 'in_1', backend: 'local', minutes: 15, error: 'HTTP 500.' }
    expect(eventText('terminate.gave-up.cleanup-retries', payload)).toBe(
      'Gave up terminating instance calm-otter (in_1) on local after 15 min: HTTP 500. Orphan cleanup will retry deleting it.',
    )
    expect(eventText('terminate.gave-up.manual', { ...payload, how: 'box b-1 in here of acct' })).toBe(
      'Gave up terminating instance calm-otter (in_1) on local after 15 min: HTTP 500. Terminate it manually: box b-1 in here of acct.',
    )
  })

  it('the events of a deletion last, and no others (orphans R86)', () => {
    expect(codes.filter(isLasting)).toEqual(codes.filter((code) => /^(removal|terminate)\./.test(code)))
    expect(isLasting('lease.created')).toBe(false)
  })

  it('every code has a level, and is written object.what', () => {
    for (const code of codes) {
      expect(code).toMatch(/^[a-z]+(\.[a-z-]+){1,2}$/)
      expect(['info', 'warning', 'error']).toContain(eventCodes[code].level)
    }
  })

  it('every finding says in one line what stands', () => {
    for (const text of Object.values(findingCodes)) expect(text).toMatch(/^[A-Z][^\n]*\.$/)
  })
})

describe('errors', () => {
  it('each code has a refusing status and a sentence', () => {
    for (const { status, text } of Object.values(errorCodes)) {
      expect(status).toBeGreaterThanOrEqual(400)
      expect(status).toBeLessThan(600)
      expect(text).toMatch(/^[A-Z][^\n]*\.$/)
    }
  })

  it('an error carries its code, status and details', () => {
    const error = new LeaseholdError('lease_expired', 'lh_1: over', { lease: 'lh_1' })
    expect(error).toMatchObject({ code: 'lease_expired', status: 409, message: 'lh_1: over', details: { lease: 'lh_1' } })
  })
})
