import { expect } from 'vitest'
import { holdsFor, type Property } from './tape.ts'

const mutantDiesWithin = 1000
/** Always the same worlds: a rare one must not be found on some days only. */
const seed = 1

/** A test that would pass without the rule is none: a decision that breaks it must be found out. */
export const dies = <Decision>(length: number, property: Property<Decision>, mutant: Decision): void => {
  expect(() => holdsFor(length, property, mutant, mutantDiesWithin, seed)).toThrow(/Property failed/)
}
