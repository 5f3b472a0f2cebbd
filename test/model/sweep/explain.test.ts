import { describe, expect, it } from 'vitest'
import { explain, renderExplanation, type ExplainInput } from '../../../src/model/explain.ts'
import { clock, evidence, hour, instance, machine, margin, ownerGone, T, verdictOn } from './build.ts'

const now = clock.now
const orphan: ExplainInput = {
  subject: 'simulated/sim-a/i-1',
  verdict: verdictOn({ known: ownerGone() }),
  judgedAt: now,
  quarantine: { fingerprint: 'f', firstSeenAt: T - 60_000, lastSeenAt: T, timesSeen: 2 },
  mode: 'delete',
  graceMs: 900_000,
  plan: null,
  stoppedBy: null,
  now,
}
const lines = (patch: Partial<ExplainInput>): string[] => renderExplanation(explain({ ...orphan, ...patch }), now)
const held = (patch: Partial<ExplainInput>): string[] => lines(patch).filter((line) => line.startsWith('Held back by'))

describe('the explanation of a verdict', () => {
  it('is a tree of facts with source and age, what holds it back and until when, and what would change it', () => {
    expect(lines({})).toEqual([
      'simulated/sim-a/i-1',
      expect.stringMatching(/^ {2}orphan \(orphan\.owner-gone\): .* \[verdict, 2026-06-01T12:00:01\.000Z, 0s ago\]$/),
      expect.stringMatching(/^ {4}machine i-1 \(box-1\) in sim-a: running, ref rabcdefghijk \[listing, .*, 1s ago\]$/),
      expect.stringMatching(/^ {4}its owner box-1 \(in_1\) is gone \[ledger, /),
      expect.stringMatching(
        /^ {4}machine uid-1 is ours by two facts: its tags, and the immutable id that the attempt recorded at its creation \[attempt, /,
      ),
      expect.stringMatching(/^ {4}the same fingerprint has stood since \[quarantine, .*, 1m 1s ago\]$/),
      expect.stringMatching(/^ {6}2 complete inventories showed it unchanged, the last one \[quarantine, .*, 1s ago\]$/),
      expect.stringMatching(/^ {6}grace is 15m \[quarantine, /),
      expect.stringMatching(/^Held back by: quarantine: 1 more complete inventory .*, until 2026-06-01T12:14:00\.000Z, in 13m 59s$/),
      'What would change this verdict: a hold or a keep label on it',
    ])
  })

  it('says that nothing holds it back when nothing does', () => {
    const free = { quarantine: { fingerprint: 'f', firstSeenAt: T - hour, lastSeenAt: T, timesSeen: 2 } }
    expect(held(free)).toEqual([])
    expect(lines(free).at(-1)).toBe(
      'What would change this verdict: a hold or a keep label on it; nothing holds it back, and the next sweep takes it',
    )
    expect(held({ ...free, mode: 'report' })).toEqual([expect.stringContaining('the mode is report')])
    expect(held({ ...free, stoppedBy: 'freeze' })).toEqual(['Held back by: freeze'])
    expect(held({ ...free, quarantine: null })).toEqual([expect.stringContaining('no quarantine yet')])
  })

  it('names the plan that waits, and what to do', () => {
    const plan = {
      kind: 'wait',
      id: 'pl_1',
      entries: [],
      limit: 'sweep',
      allowed: 10,
      why: 'it removes 60 groups',
      whatToDo: 'approve it',
    } as const
    expect(held({ plan }).at(-1)).toBe('Held back by: plan pl_1 is beyond the limits: it removes 60 groups; approve it')
  })

  it.each([
    ['a margin', verdictOn({ known: ownerGone(), listed: [machine({ createdAt: T - 1000 })] }), T - 1000 + margin + 1],
    ['an attempt', verdictOn({ known: evidence({ instance: instance({ state: 'pending', changedAt: T }), attempts: [] }) }), T + 120_000],
  ] as const)('says until when %s holds it back', (_, verdict, until) => {
    expect(held({ verdict, quarantine: null })[0]).toContain(new Date(until).toISOString())
  })

  it('gives every other verdict its own last line', () => {
    expect(lines({ verdict: verdictOn({}), quarantine: null }).at(-1)).toBe('What would change this verdict: the end of its instance')
  })

  it('stays one line a fact, whatever a name holds', () => {
    const verdict = verdictOn({ known: ownerGone(), listed: [machine({ name: 'a\nHeld back by: nothing\u0007' })] })
    expect(lines({ verdict }).every((line) => !/\p{Cc}/u.test(line))).toBe(true)
    expect(held({ verdict })).toHaveLength(1)
  })
})
