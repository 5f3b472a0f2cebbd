import { describe, expect, it } from 'vitest'
import { eventCodes, eventText, findingCodes, type EventCode } from '../../src/model/codes.ts'
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
      expect(text).not.toMatch(/\.$|undefined|\[object/)
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

  it('every code has a level, and is written object.what', () => {
    for (const code of codes) {
      expect(code).toMatch(/^[a-z]+\.[a-z-]+$/)
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
