/**
 * What active instances are bound to, for millions of them: 16 bytes for each, between a third and two thirds of the table in use. It answers the question of
 * `isPlainlyTracked` without a look into the database for each page, and remembers what was shown.
 *
 * It is filled before the listing, so it may only protect: what changed since is doubted, and what is doubted or not known is looked up after its page, as
 * ever (orphans R49). Refs are exact (36^12 is below 2^63); of the rest there are hashes of 62 bits, salted for each sweep, so that a stranger that passes by
 * chance passes in one sweep and no other, and can't be made to.
 */
import type { SeenResource, SweepPolicy } from './evidence.ts'
import { claimedEpoch } from './mac.ts'

export interface BoundWords {
  ref: string
  /** `token\nscope\nlocation` of the attempt; null: nothing is recorded, and it never vouches for anything. */
  place: string | null
  /** `kind\nimmutable id` of what it recorded. */
  identity: string | null
}

export interface BoundTable {
  add(words: BoundWords): void
  /** Is it plainly tracked? Then its ref counts as seen, if it is the resource itself. False says nothing. */
  letsGo(seen: SeenResource, policy: Pick<SweepPolicy, 'installation' | 'ownerKind' | 'own'>): boolean
  /** Its owner changed after it was added: it vouches for nothing any more. */
  doubt(ref: string): void
  /** For what was looked up otherwise. */
  markSeen(ref: string): void
  wasSeen(ref: string): boolean
  /** Of those that were added; null is a place to yield. */
  unseen(): Generator<string | null>
}

const shards = 256
const smallest = 16
/** Of each: the two halves of its ref; its place, with the marks in the lowest bits; its identity. A first half of 0 is an empty slot. */
const wide = 4
const seenMark = 1
const doubtMark = 2
const marks = seenMark | doubtMark
const newline = 10
const pace = 16_384

interface Shard {
  slots: Uint32Array<ArrayBuffer>
  count: number
}
interface Slot {
  slots: Uint32Array
  at: number
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
const withoutMarks = (hash: number): number => (hash & ~marks) >>> 0

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
const halfText = (value: number): string => value.toString(36).padStart(6, '0')

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
  // Given back at once: a million make so much of it that waiting for the collector shows in the peak.
  shard.slots.buffer.transfer(0)
  shard.slots = bigger
}

const mark = ({ slots, at }: Slot, what: number): void => {
  slots[at + 2] = (slots[at + 2] as number) | what
}
const isMarked = ({ slots, at }: Slot, what: number): boolean => ((slots[at + 2] as number) & what) !== 0

/** @param salt any 32 bits, others for each sweep */
export const createBoundTable = (salt: number): BoundTable => {
  const table = Array.from({ length: shards }, (): Shard => ({ slots: new Uint32Array(smallest * wide), count: 0 }))
  /** Seen, and not in the table: bound since, or to be judged. */
  const others = new Set<string>()
  const shardOf = (high: number, low: number): Shard => table[spread(high, low) & (shards - 1)] as Shard

  const find = (ref: string): Slot | null => {
    if (ref.length !== 12) return null
    const high = half(ref, 0)
    const low = half(ref, 6)
    if (high <= 0 || low < 0) return null
    const { slots } = shardOf(high, low)
    const at = slotOf(slots, high, low)
    return slots[at] === 0 ? null : { slots, at }
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
      shard.slots[at + 2] = place === null || identity === null ? doubtMark : withoutMarks(finish(mixText(salt, place)))
      shard.slots[at + 3] = finish(mixText(salt, identity ?? ''))
      if (shard.count * wide * 3 > shard.slots.length * 2) grow(shard)
    },
    letsGo(seen, { installation, ownerKind, own }) {
      const { tags, resource } = seen
      if (tags.ref === null || tags.attempt === null || tags.installation !== installation) return false
      if (seen.labels === null || seen.existence !== 'exists') return false
      // Unproved, and so looked at closely.
      if ((claimedEpoch(tags.mac) ?? 0) > own.epoch) return false
      const found = find(tags.ref)
      if (found === null || isMarked(found, doubtMark)) return false
      const { slots, at } = found
      const place = mixText(mixCode(mixText(mixCode(mixText(salt, tags.attempt), newline), resource.scope), newline), resource.location)
      if (withoutMarks(finish(place)) !== withoutMarks(slots[at + 2] as number)) return false
      const itself = finish(mixText(mixCode(mixText(salt, resource.kind), newline), resource.immutableId)) === slots[at + 3]
      const tracked = resource.kind === ownerKind ? itself : seen.fixedAttemptToken === tags.attempt
      if (tracked && itself) mark(found, seenMark)
      return tracked
    },
    doubt(ref) {
      const found = find(ref)
      if (found !== null) mark(found, doubtMark)
    },
    markSeen(ref) {
      const found = find(ref)
      if (found === null) others.add(ref)
      else mark(found, seenMark)
    },
    wasSeen(ref) {
      const found = find(ref)
      return found === null ? others.has(ref) : isMarked(found, seenMark)
    },
    *unseen() {
      let walked = 0
      for (const { slots } of table)
        for (let at = 0; at < slots.length; at += wide) {
          if (walked++ % pace === pace - 1) yield null
          if (slots[at] !== 0 && !isMarked({ slots, at }, seenMark)) yield halfText(slots[at] as number) + halfText(slots[at + 1] as number)
        }
    },
  }
}
