import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { briefDuration, formatDuration, parseDuration } from '../../src/lib/duration.ts'

const milliseconds = (text: string, options = {}): number => {
  const result = parseDuration(text, options)
  if (!result.ok) throw new Error(result.problem)
  return result.milliseconds
}
const problem = (text: string): string => {
  const result = parseDuration(text)
  if (result.ok) throw new Error(`${text} was read as ${result.milliseconds}`)
  return result.problem
}

describe('durations', () => {
  it.each([
    ['90s', 90_000],
    ['30m', 1_800_000],
    ['2h', 7_200_000],
    ['1h30m', 5_400_000],
    ['1h 30m', 5_400_000],
    ['500ms', 500],
    ['1d', 86_400_000],
    ['1.5h', 5_400_000],
    ['0.3s', 300],
    ['0s', 0],
    ['-5s', -5000],
  ])('reads %s', (text, expected) => {
    expect(milliseconds(text)).toBe(expected)
  })

  it('refuses a number without a unit and says which units there are', () => {
    expect(problem('90')).toContain('write 90s, 90m or 90h')
    expect(milliseconds('90', { bare: 'seconds' })).toBe(90_000)
  })

  it.each([
    '',
    ' ',
    's',
    '5x',
    '5 s',
    '1m1h',
    '1h1h',
    '5s!',
    '1e3s',
    '١s',
    'Infinitys',
    '5S',
    '0.0001s',
    '99999999999999d',
    '--5s',
    '1h-5m',
    '5mss',
  ])('refuses %j', (text) => {
    expect(problem(text)).not.toBe('')
  })

  it('reads back every duration that it writes', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (value) => {
        expect(milliseconds(formatDuration(value))).toBe(value)
        expect(milliseconds(formatDuration(value).replaceAll(' ', ''))).toBe(value)
      }),
    )
  })

  it('never throws and never answers a number that is not whole', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^-?[0-9]{1,20}(\.[0-9]{1,5})?(ms|[smhd])$/)), (text) => {
        const result = parseDuration(text)
        if (result.ok) expect(Number.isSafeInteger(result.milliseconds)).toBe(true)
        else expect(result.problem).not.toBe('')
      }),
    )
  })

  it('shows at most two units in tables', () => {
    expect(briefDuration(3_900_000)).toBe('1h 5m')
    expect(briefDuration(90_061_000)).toBe('1d 1h')
    expect(briefDuration(999)).toBe('0s')
  })
})
