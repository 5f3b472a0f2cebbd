/** Durations, sizes and shares of CPUs as Go programs read them, so that they mean here what they mean to `docker stack deploy`. Null: it is none. */

const nanoseconds: Readonly<Record<string, number>> = { ns: 1, us: 1e3, µs: 1e3, μs: 1e3, ms: 1e6, s: 1e9, m: 60e9, h: 3600e9 }

/** Nanoseconds of `1h30m`, `1.5s`, `500ms`; beyond 104 days it is not exact and refused. */
export const goDuration = (text: string): number | null => {
  if (text === '0') return 0
  const sign = text.startsWith('-') ? -1 : 1
  const body = text.replace(/^[-+]/, '')
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(body)) return null
  let total = 0
  for (const [, amount, unit] of body.matchAll(/([\d.]+)(ns|us|µs|μs|ms|s|m|h)/g))
    total += Number(amount) * (nanoseconds[unit as string] as number)
  const rounded = Math.trunc(total + 1e-6)
  return Number.isSafeInteger(rounded) ? sign * rounded || 0 : null
}

/** Bytes of `64m`, `1.5GiB`, `100`; units are powers of 1024 whatever they are called. */
export const ramBytes = (text: string): number | null => {
  const found = /^(\d+(?:\.\d+)?) ?([kKmMgGtTpP])?[iI]?[bB]?$/.exec(text)
  if (!found) return null
  const power = found[2] === undefined ? 0 : 'kmgtp'.indexOf(found[2].toLowerCase()) + 1
  const bytes = Math.trunc(Number(found[1]) * 1024 ** power)
  return Number.isSafeInteger(bytes) ? bytes : null
}

/** Billionths of a CPU of `0.5`; what is finer is refused, as Docker refuses it. */
export const nanoCpus = (text: string): number | null => {
  const found = /^(\d+)(?:\.(\d+))?$|^\.(\d+)$/.exec(text)
  if (!found) return null
  const fraction = (found[2] ?? found[3] ?? '').replace(/0+$/, '')
  if (fraction.length > 9) return null
  const nano = Number(`${found[1] ?? '0'}${fraction.padEnd(9, '0')}`)
  return Number.isSafeInteger(nano) ? nano : null
}
