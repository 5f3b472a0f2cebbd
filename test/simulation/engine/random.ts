/** Chance from a seed: the same on every run and every machine. */

export interface Chance {
  /** From 0 to 1. */
  next: () => number
  /** One of so many. */
  pick: (options: number) => number
  of: <T>(options: readonly T[]) => T
  /** True `percent` times in a hundred. */
  chance: (percent: number) => boolean
  /** One of the names, as often as its weight says. */
  weighted: <K extends string>(weights: Readonly<Record<K, number>>) => K
}

export const chanceOf = (seed: number): Chance => {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const pick = (options: number): number => Math.floor(next() * options)
  return {
    next,
    pick,
    of: (options) => options[pick(options.length)]!,
    chance: (percent) => next() * 100 < percent,
    weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
      const entries = Object.entries(weights) as [K, number][]
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [name, weight] of entries) if ((left -= weight) < 0) return name
      return entries.at(-1)![0]
    },
  }
}
