/**
 * Cheap worlds: a world is built by reading choices off a tape of bytes. fast-check makes and shrinks the tape; a tape of zeros is the plainest world.
 */
import fc from 'fast-check'

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
/** A world that failed is played again by these two, as a failure prints them. */
const replayed = { seed: process.env['LEASEHOLD_PURE_SEED'], path: process.env['LEASEHOLD_PURE_PATH'] }
/** ms; the machine may be busy with others. */
export const patience = 120_000

/** A property over worlds; it throws where it does not hold. */
export type Property<Decision> = (tape: Tape, decide: Decision) => void

/** @throws where it does not hold, with the command that plays that world again */
export const holdsFor = <Decision>(
  length: number,
  property: Property<Decision>,
  decide: Decision,
  worlds: number,
  seed = replayed.seed === undefined ? undefined : Number(replayed.seed),
): void => {
  const details = fc.check(
    fc.property(tapes(length), (bytes) => property(tapeOf(bytes), decide)),
    {
      numRuns: worlds,
      ...(seed === undefined ? {} : { seed }),
      ...(replayed.path === undefined ? {} : { path: replayed.path }),
    },
  )
  if (!details.failed) return
  const error = details.errorInstance instanceof Error ? details.errorInstance.message : String(details.errorInstance)
  throw new Error(
    `Property failed after ${details.numRuns} worlds: ${error}\nAgain: LEASEHOLD_PURE_SEED=${details.seed} LEASEHOLD_PURE_PATH=${details.counterexamplePath} npx vitest run test/simulation/pure -t holds`,
  )
}
