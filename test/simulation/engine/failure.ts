import type { Told } from './world.ts'

export const isSound = (told: Told): boolean => told.violations.length === 0

/** What did not hold in a world, and the command that plays exactly that world again. */
export const failureOf = ({ seed, violations }: Told): string =>
  [
    `world ${seed}:`,
    ...violations.slice(0, 10).map(({ invariant, what }) => `  ${invariant}: ${what}`),
    `Again: LEASEHOLD_WORLD_SEED=${seed} npx vitest run test/simulation/engine/worlds-1.test.ts`,
  ].join('\n')
