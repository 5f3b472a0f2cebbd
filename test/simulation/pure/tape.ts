/**
 * Cheap worlds: a world is built by reading choices off a tape of bytes. fast-check makes and shrinks the tape; a tape of zeros is the plainest world.
 */
import fc from 'fast-check'
import { expect } from 'vitest'

export interface Tape {
  /** One of so many; 0 when the tape has ended. */
  pick: (options: number) => number
  of: <T>(options: readonly T[]) => T
  /** True `percent` times in a hundred. */
  chance: (percent: number) => boolean
}

export const tapeOf = (bytes: Uint8Array): Tape => {
  let at = 0
  const pick = (options: number): number => (bytes[at++] ?? 0) % options
  return {
    pick,
    of: (options) => options[pick(options.length)]!,
    // The high end of a byte says yes, so that zeros say no.
    chance: (percent) => (bytes[at++] ?? 0) >= 256 - percent * 2.56,
  }
}

/** Made of words, because fast-check takes as long for a byte as for a word. @param length in bytes, a multiple of 4 */
export const tapes = (length: number): fc.Arbitrary<Uint8Array> =>
  fc
    .uint32Array({ minLength: length / 4, maxLength: length / 4 })
    .map((words) => new Uint8Array(words.buffer, words.byteOffset, words.byteLength))

/** In all properties together: 100,000 worlds. */
export const worldsEach = 20_000
/** ms; the machine may be busy with others. */
export const patience = 120_000
const mutantDiesWithin = 1000

/** A property over worlds; it throws where it does not hold. */
export type Property<Decision> = (tape: Tape, decide: Decision) => void

export const holdsFor = <Decision>(length: number, property: Property<Decision>, decide: Decision, worlds: number): void => {
  fc.assert(
    fc.property(tapes(length), (bytes) => property(tapeOf(bytes), decide)),
    { numRuns: worlds },
  )
}

/** A test that would pass without the rule is none: a decision that breaks it must be found out. */
export const dies = <Decision>(length: number, property: Property<Decision>, mutant: Decision): void => {
  expect(() => holdsFor(length, property, mutant, mutantDiesWithin)).toThrow(/Property failed/)
}
