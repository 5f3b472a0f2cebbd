/**
 * A set of refs for listings of a million: 36^12 is below 2^63, so a ref is two halves of 32 bits and costs 11 to 22 bytes here, where a set of texts takes
 * about 100. It is exact. Its shards grow one at a time, so that no call has to move all of it.
 */
export interface RefSet {
  add(ref: string): void
  has(ref: string): boolean
}

interface Shard {
  /** High and low half of each ref, side by side; a high half of 0 is an empty place: a ref begins with a letter. */
  slots: Uint32Array
  count: number
}

const shards = 256
const smallest = 16

/** Six characters of `[a-z0-9]` as a number below 2^32; -1: something else. */
const half = (text: string, from: number): number => {
  let value = 0
  for (let i = from; i < from + 6; i++) {
    const code = text.charCodeAt(i)
    const digit = code >= 97 && code <= 122 ? code - 87 : code >= 48 && code <= 57 ? code - 48 : -1
    if (digit < 0) return -1
    value = value * 36 + digit
  }
  return value
}

const mix = (high: number, low: number): number => {
  let hash = Math.imul(high, 0x9e3779b1) ^ Math.imul(low, 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 15), 0xc2b2ae35)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** The place where this ref stands, or the empty one where it would; counted in refs. */
const placeOf = (slots: Uint32Array, hash: number, high: number, low: number): number => {
  const last = slots.length / 2 - 1
  for (let place = (hash >>> 8) & last; ; place = (place + 1) & last) {
    const there = slots[place * 2]
    if (there === 0 || (there === high && slots[place * 2 + 1] === low)) return place
  }
}

const put = (slots: Uint32Array, high: number, low: number): boolean => {
  const place = placeOf(slots, mix(high, low), high, low)
  const isNew = slots[place * 2] === 0
  slots[place * 2] = high
  slots[place * 2 + 1] = low
  return isNew
}

const grown = (slots: Uint32Array): Uint32Array => {
  const bigger = new Uint32Array(slots.length * 2)
  for (let i = 0; i < slots.length; i += 2) if (slots[i] !== 0) put(bigger, slots[i] as number, slots[i + 1] as number)
  return bigger
}

export const createRefSet = (): RefSet => {
  const table = Array.from({ length: shards }, (): Shard => ({ slots: new Uint32Array(smallest * 2), count: 0 }))
  // What no ref of ours looks like is kept as it is: this is a set, not a judge.
  const others = new Set<string>()
  const parts = (ref: string): { high: number; low: number } | null => {
    if (ref.length !== 12) return null
    const high = half(ref, 0)
    const low = half(ref, 6)
    return high <= 0 || low < 0 ? null : { high, low }
  }
  return {
    add(ref) {
      const known = parts(ref)
      if (known === null) {
        others.add(ref)
        return
      }
      const shard = table[mix(known.high, known.low) & (shards - 1)] as Shard
      if (!put(shard.slots, known.high, known.low)) return
      shard.count++
      // At most three quarters full.
      if (shard.count * 8 > shard.slots.length * 3) shard.slots = grown(shard.slots)
    },
    has(ref) {
      const known = parts(ref)
      if (known === null) return others.has(ref)
      const { slots } = table[mix(known.high, known.low) & (shards - 1)] as Shard
      return slots[placeOf(slots, mix(known.high, known.low), known.high, known.low) * 2] !== 0
    },
  }
}
