/** Settings of sweeps that a suite changes as it goes. */
import type { SweepMode, SweepSettings } from '../../src/model/sweep-settings.ts'

export const sweepsAs =
  (given: { mode: SweepMode; graceMs?: number; intervalMs?: number; reportEveryMs?: number }): (() => SweepSettings) =>
  () => {
    const of = <T>(value: T) => ({ value, origin: 'test' })
    return {
      mode: of(given.mode),
      intervalMs: of(given.intervalMs ?? 900_000),
      graceMs: of(given.graceMs ?? 900_000),
      reportEveryMs: of(given.reportEveryMs ?? 86_400_000),
    }
  }
