/** Durations as people write them: `90s`, `30m`, `1h30m`. Inside the program a duration is whole milliseconds. */

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const

const millisecondsOf = new Map<string, number>(units)

export interface DurationOptions {
  /** What a number without a unit means; without this it is refused, because `90` may be meant as seconds or minutes. */
  bare?: 'seconds'
}

export type DurationResult = { ok: true; milliseconds: number } | { ok: false; problem: string }

const refused = (problem: string): DurationResult => ({ ok: false, problem })

/** Reads `90s`, `1h30m`, `1h 30m`, `500ms`, `1d`: largest unit first, each at most once; a leading `-` is read, not judged. */
export const parseDuration = (text: string, options: DurationOptions = {}): DurationResult => {
  const trimmed = text.trim()
  if (trimmed === '') return refused('is empty: write a number and a unit, such as 90s, 30m or 2h')
  if (/^-?\d+(\.\d+)?$/.test(trimmed)) {
    if (options.bare === 'seconds') return exact(Number(trimmed) * 1000, trimmed)
    return refused(`"${trimmed}" has no unit: write ${trimmed}s, ${trimmed}m or ${trimmed}h`)
  }
  const negative = trimmed.startsWith('-')
  const parts = [...trimmed.slice(negative ? 1 : 0).matchAll(/\s*(\d+(?:\.\d+)?)(ms|[dhms])(?![a-z])/gy)]
  const consumed = parts.reduce((length, part) => length + part[0].length, negative ? 1 : 0)
  if (parts.length === 0 || consumed !== trimmed.length) {
    return refused(`"${trimmed}" is not a duration: write a number and a unit (ms, s, m, h, d), such as 90s, 30m or 1h30m`)
  }
  let total = 0
  let last = Number.POSITIVE_INFINITY
  for (const [, amount, unit] of parts) {
    const size = millisecondsOf.get(unit as string) as number
    if (size >= last) return refused(`"${trimmed}" is not in order: write the largest unit first and each unit once, such as 1h30m`)
    last = size
    total += Number(amount) * size
  }
  return exact(negative ? -total : total, trimmed)
}

const exact = (milliseconds: number, text: string): DurationResult => {
  // 0.3 s is 300.00000000000006 ms in floating point: what is not a millisecond after that noise is refused, not rounded.
  const rounded = Math.round(milliseconds)
  if (Math.abs(milliseconds - rounded) > 1e-6) return refused(`"${text}" is finer than a millisecond`)
  if (!Number.isSafeInteger(rounded)) return refused(`"${text}" is too long`)
  return { ok: true, milliseconds: rounded === 0 ? 0 : rounded }
}

const partsOf = (milliseconds: number): string[] => {
  const parts: string[] = []
  let rest = Math.abs(Math.trunc(milliseconds))
  for (const [unit, size] of units) {
    const amount = Math.floor(rest / size)
    if (amount > 0) parts.push(`${amount}${unit}`)
    rest -= amount * size
  }
  return parts
}

/** All of it: `1h 5m`, `2s 500ms`, `0s`. `parseDuration` reads it back to the same number. */
export const formatDuration = (milliseconds: number): string => {
  const parts = partsOf(milliseconds)
  if (parts.length === 0) return '0s'
  return `${milliseconds < 0 ? '-' : ''}${parts.join(' ')}`
}

/** At most the two largest units, rounded down, for tables: `1h 5m`, `3d 4h`; below a second `0s`. */
export const briefDuration = (milliseconds: number): string => {
  const seconds = Math.trunc(milliseconds / 1000) * 1000
  return formatDuration(seconds).split(' ').slice(0, 2).join(' ')
}
