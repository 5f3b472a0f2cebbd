/**
 * What active instances are bound to, for millions of them: 16 bytes for each, two thirds of the table at most in use. It answers the question of
 * `isPlainlyTracked` without a look into the database for each page, and remembers what was shown.
 *
 * It is filled before the listing, and so it may only protect: what it lets go of is not judged in this sweep. Whatever it does not know is looked up after its
 * page, as ever (orphans R49). Refs are exact (36^12 is below 2^63); of the rest there are hashes of 32 bits, salted for each sweep, so that a stranger that
 * passes by chance passes once in 2^32 sweeps and can't be made to.
 */
import type { SeenResource, SweepPolicy } from './evidence.ts'

export interface BoundWords {
  ref: string
  /** `token\nscope\nlocation` of the attempt. */
  place: string
  /** `kind\nimmutable id` of what it recorded. */
  identity: string
}

export interface BoundTable {
  add(words: BoundWords): void
  /** Is it plainly tracked? Then its ref counts as seen, if it is the resource itself. False says nothing. */
  letsGo(seen: SeenResource, policy: Pick<SweepPolicy, 'installation' | 'ownerKind'>): boolean
  /** For what was looked up otherwise. */
  markSeen(ref: string): void
  wasSeen(ref: string): boolean
}

const shards = 256
const smallest = 16
/** Of each: the two halves of its ref, its place with the mark for "seen" in the lowest bit, its identity. A first half of 0 is an empty slot. */
const wide = 4
const end = 10

interface Shard {
  slots: Uint32Array
  count: number
}

const mixCode = (hash: number, code: number): number => {
  const mixed = Math.imul(hash ^ Math.imul(code, 0xcc9e2d51), 0x1b873593)
  return (mixed << 13) | (mixed >>> 19)
}
const mixText = (hash: number, text: string): number => {
  let mixed = hash
  for (let i = 0; i < text.length; i++) mixed = mixCode(mixed, text.charCodeAt(i))
  return mixed
}
const finish = (hash: number): number => {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
const withoutMark = (hash: number): number => (hash & ~1) >>> 0

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

const spread = (high: number, low: number): number => finish(Math.imul(high, 0x9e3779b1) ^ low)

/** Where this ref stands, or the empty slot where it would. */
const slotOf = (slots: Uint32Array, high: number, low: number): number => {
  const last = slots.length / wide - 1
  for (let slot = (spread(high, low) >>> 8) & last; ; slot = (slot + 1) & last) {
    const at = slot * wide
    if (slots[at] === 0 || (slots[at] === high && slots[at + 1] === low)) return at
  }
}

/** One shard at a time, so that no call has to move the whole table. */
const grow = (shard: Shard): void => {
  const bigger = new Uint32Array(shard.slots.length * 2)
  for (let at = 0; at < shard.slots.length; at += wide)
    if (shard.slots[at] !== 0)
      bigger.set(shard.slots.subarray(at, at + wide), slotOf(bigger, shard.slots[at] as number, shard.slots[at + 1] as number))
  shard.slots = bigger
}

/** @param salt any 32 bits, others for each sweep */
export const createBoundTable = (salt: number): BoundTable => {
  const table = Array.from({ length: shards }, (): Shard => ({ slots: new Uint32Array(smallest * wide), count: 0 }))
  // Seen, and not in the table: bound since, or to be judged.
  const others = new Set<string>()
  const shardOf = (high: number, low: number): Shard => table[spread(high, low) & (shards - 1)] as Shard

  const find = (ref: string): { slots: Uint32Array; at: number } | null => {
    if (ref.length !== 12) return null
    const high = half(ref, 0)
    const low = half(ref, 6)
    if (high <= 0 || low < 0) return null
    const { slots } = shardOf(high, low)
    const at = slotOf(slots, high, low)
    return slots[at] === 0 ? null : { slots, at }
  }
  const mark = ({ slots, at }: { slots: Uint32Array; at: number }): void => {
    slots[at + 2] = (slots[at + 2] as number) | 1
  }

  return {
    add({ ref, place, identity }) {
      const high = half(ref, 0)
      const low = half(ref, 6)
      // No ref of ours: looked up otherwise, like everything that is not in here.
      if (ref.length !== 12 || high <= 0 || low < 0) return
      const shard = shardOf(high, low)
      const at = slotOf(shard.slots, high, low)
      if (shard.slots[at] === 0) shard.count++
      shard.slots[at] = high
      shard.slots[at + 1] = low
      shard.slots[at + 2] = withoutMark(finish(mixText(salt, place)))
      shard.slots[at + 3] = finish(mixText(salt, identity))
      if (shard.count * wide * 3 > shard.slots.length * 2) grow(shard)
    },
    letsGo(seen, { installation, ownerKind }) {
      const { tags, resource } = seen
      if (tags.ref === null || tags.attempt === null || tags.installation !== installation) return false
      if (seen.labels === null || seen.existence !== 'exists') return false
      const found = find(tags.ref)
      if (found === null) return false
      const { slots, at } = found
      const place = mixText(mixCode(mixText(mixCode(mixText(salt, tags.attempt), end), resource.scope), end), resource.location)
      if (withoutMark(finish(place)) !== withoutMark(slots[at + 2] as number)) return false
      const itself = finish(mixText(mixCode(mixText(salt, resource.kind), end), resource.immutableId)) === slots[at + 3]
      if (!itself && (resource.kind === ownerKind || seen.fixedAttemptToken !== tags.attempt)) return false
      if (itself) mark(found)
      return itself ? resource.kind === ownerKind || seen.fixedAttemptToken === tags.attempt : true
    },
    markSeen(ref) {
      const found = find(ref)
      if (found === null) others.add(ref)
      else mark(found)
    },
    wasSeen(ref) {
      const found = find(ref)
      return found === null ? others.has(ref) : ((found.slots[found.at + 2] as number) & 1) === 1
    },
  }
}
