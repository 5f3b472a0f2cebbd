/** What must not grow out of hand with the size of an account: parts that a suite plays small and the soak large (cases M4, M6, M8). */
import { holdAmong, type HoldTargets } from '../../../src/model/holds-index.ts'
import { judgeGroup, type BoundMember, type MemberRead } from '../../../src/model/group-removal.ts'
import { mergeProgress } from '../../../src/model/progress.ts'
import type { HoldFacts } from '../../../src/model/removal.ts'

const heldEvery = 10

/** @param looks how often any hold was looked at */
export const countingHolds = (count: number): { holds: HoldFacts[]; looks: () => number } => {
  let looks = 0
  const holds = Array.from({ length: count }, (_, i): HoldFacts => {
    const targetId = `cloud/here/box-${i * heldEvery}`
    return Object.defineProperty({ id: `hd_${i}`, targetType: 'resource' as const, targetId }, 'targetId', {
      get: () => {
        looks++
        return targetId
      },
    })
  })
  return { holds, looks: () => looks }
}

export const targetOf = (n: number): HoldTargets => ({
  resourceKeys: [`cloud/here/box-${n}`],
  instanceId: `in_${n}`,
  leaseId: null,
  project: 'default',
  scope: 'scope:one',
})

/** @returns how many of so many resources are held */
export const membership = (holds: readonly HoldFacts[], resources: number): number => {
  let held = 0
  for (let n = 0; n < resources; n++) if (holdAmong(holds, targetOf(n)) !== undefined) held++
  return held
}

const member = (n: number): BoundMember => ({
  scope: 's',
  location: 'l',
  kind: 'object',
  nativeId: `o-${n}`,
  immutableId: `o-${n}#1`,
  labelsHash: 'h',
  attachedTo: [],
  takesAlong: [],
})

export interface LongRemoval {
  /** The progress as it was stored after each step, by its length. */
  stored: number[]
  /** Calls that deleted each member. */
  calls: Map<string, number>
}

/**
 * A removal of many members, decided step by step as the engine does, by workers each of which dies after so many steps: what is stored is all that the next one
 * knows.
 */
export const longRemoval = (size: number, stepsEach: number): LongRemoval => {
  const members = Array.from({ length: size }, (_, n) => member(n))
  const there = new Set(members.map((one) => one.immutableId))
  const answered = new Set<string>()
  const calls = new Map<string, number>()
  const stored: number[] = []
  let kept: string[] = []
  const readOf = (id: string): MemberRead =>
    there.has(id) ? { kind: 'present', labelsHash: 'h', attachedTo: [], takesAlong: [] } : { kind: 'absent', proof: 'not found' }
  for (let worker = 0; worker <= 2 * size; worker++) {
    let mine = kept
    for (let step = 0; step < stepsEach; step++) {
      const reads = new Map(
        members.filter((one) => !mine.includes(one.immutableId)).map((one) => [one.immutableId, readOf(one.immutableId)]),
      )
      const verdict = judgeGroup({ members, progress: mine, answered, acknowledged: new Map(), reads })
      if (verdict.kind === 'done') return { stored, calls }
      if (verdict.kind === 'next') {
        const id = verdict.member.immutableId
        calls.set(id, (calls.get(id) ?? 0) + 1)
        there.delete(id)
        answered.add(id)
      } else if (verdict.kind === 'append') {
        const merged = mergeProgress(kept, [...mine, verdict.member.immutableId])
        if (merged.kind === 'diverged') throw new Error(merged.why)
        kept = mine = merged.progress
        stored.push(kept.length)
      } else throw new Error(`a step of a long removal is ${verdict.kind}`)
    }
  }
  throw new Error('a long removal does not end')
}
