/** Whose settings of sweeps `config` shows: those that `serve` would take from this shell, which need not be those of the coordinator that runs. */
import type { SweepSettings } from '../../model/sweep-settings.ts'
import type { StatusView, SweepModeView } from '../../model/wire.ts'
import { messageOf } from './errors.ts'
import { createClient } from './http.ts'

const deadlineMs = 3_000

const differences = (running: readonly SweepModeView[], here: ReadonlyMap<string, SweepSettings>): string[] =>
  running.flatMap((one) => {
    const mine = here.get(one.provider)
    if (!mine || !one.canList) return []
    const rows: [string, string | number, string | number][] = [
      ['mode', one.mode, mine.mode.value],
      ['intervalSeconds', one.intervalSeconds, mine.intervalMs.value / 1000],
      ['graceSeconds', one.graceSeconds, mine.graceMs.value / 1000],
    ]
    return rows
      .filter(([, theirs, ours]) => theirs !== ours)
      .map(([name, theirs]) => `sweep.${one.provider}.${name} is ${theirs} there${name === 'mode' ? ` (${one.origin})` : ''}`)
  })

/** One sentence. Asks the coordinator what it runs with, and says so where it can't be asked. */
export const whoseSweeps = async (
  coordinator: { url: string; origin: string; token: string | null },
  here: ReadonlyMap<string, SweepSettings>,
): Promise<string> => {
  const whose = `the sweep settings shown are those that "leasehold serve" would take from this shell, not those of the coordinator at ${coordinator.url}`
  try {
    const client = createClient({ ...coordinator, tokenHint: '' })
    const { status } = await client.get<{ status: StatusView }>('/v1/status', { deadlineMs })
    const different = differences(status.sweeps, here)
    return different.length === 0 ? `${whose}, which runs with the same` : `${whose}: ${different.join(', ')}`
  } catch (error) {
    return `${whose}, which could not be asked (${messageOf(error)}); "leasehold status" shows them`
  }
}
