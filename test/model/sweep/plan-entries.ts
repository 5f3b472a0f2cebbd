import { createHash } from 'node:crypto'
import type { PlanEntry } from '../../../src/model/limits.ts'

export const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
export const entry = (number: number, patch: Partial<PlanEntry> = {}): PlanEntry => ({
  target: `simulated/sim-a/i-${number}`,
  provider: 'simulated',
  kind: 'machine',
  rule: 'orphan.owner-ended',
  fingerprint: `f${number}`,
  ...patch,
})
export const entries = (count: number, patch: Partial<PlanEntry> = {}): PlanEntry[] =>
  Array.from({ length: count }, (_, i) => entry(i, patch))
