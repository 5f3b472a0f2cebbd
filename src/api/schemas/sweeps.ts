/** Sweeps and explanations: what is asked for, and what is answered. */
import { Type } from 'typebox'
import { findingCodes, type FindingCode } from '../../model/codes.ts'
import type { ExplanationNodeView, SweepOrphanView, SweepPlanView } from '../../model/wire.ts'
import { closed, component, flagOrNull, limit, may, numbers, oneOf, ref, text, textOrNull, time, timeOrNull, whole } from './kinds.ts'

const project = (description: string) => may(text({ minLength: 1, description }))
const backend = may(text({ minLength: 1, description: 'Only of this backend.' }))

export const sweepBody = closed({
  backend: may(textOrNull({ minLength: 1, maxLength: 100, description: 'Missing or null: every backend of the project.' })),
  project: may(textOrNull({ minLength: 1, maxLength: 100, description: "Missing or null: the token's own, else `default`." })),
  letPass: may(
    textOrNull({
      minLength: 1,
      maxLength: 500,
      description:
        'Why the implausible counts that the open finding `counts-implausible` of this one backend shows may pass. For this sweep only, and for exactly those counts.',
    }),
  ),
  dryRun: may(flagOrNull({ description: 'Looks, judges and plans, and writes nothing.' })),
})
export const sweepQuery = closed({ backend, project: project('Only of this project.'), limit: limit() })
export const sweepId = closed({ id: text({ minLength: 1, description: 'The id of a sweep.' }) })
export const explainKey = closed({
  key: text({
    minLength: 1,
    description: 'Any id, a slug, a ref, `provider/location/native-id` (URL-encoded), or a native id that only one resource has.',
  }),
})
export const findingFilters = {
  code: may(
    Type.Array(oneOf(Object.keys(findingCodes) as FindingCode[]), { description: 'Only of these; repeated, or separated by commas.' }),
  ),
  backend,
}

export const SweepCell = component(
  'SweepCell',
  {
    location: text(),
    kind: text(),
    state: oneOf(['complete', 'partial', 'denied']),
    why: textOrNull({ description: 'Why it is partial, or which permission is missing.' }),
    pages: whole(),
    resources: whole(),
    cleanAt: timeOrNull(),
  },
  'One location and kind of a listing. Absence is concluded from complete cells only.',
)

export const HeldBack = component(
  'HeldBack',
  { what: text(), until: timeOrNull() },
  'What keeps something from happening; `until` null: not by time alone.',
)

export const SweepOrphan = component(
  'SweepOrphan',
  {
    target: text({ description: '`provider/location/native-id`' }),
    name: text(),
    reason: text(),
    findingID: textOrNull(),
    removalID: textOrNull({ description: 'Its removal, once one is open.' }),
    eligibleAt: timeOrNull(),
    heldBack: Type.Array(ref(HeldBack)),
  },
  'Ours by two facts, and wanted by nobody.',
)

const plan = Type.Unsafe<SweepPlanView | null>({
  description: 'What is taken back, under the limits; null: nothing. Of a dry run in report mode: what delete mode would do.',
  type: ['object', 'null'],
  required: ['kind', 'id', 'removals', 'waiting', 'why', 'whatToDo'],
  properties: {
    kind: oneOf(['begin', 'wait']),
    id: textOrNull(),
    removals: { type: 'array', items: { type: 'string' } },
    waiting: whole(),
    why: textOrNull(),
    whatToDo: textOrNull(),
  },
})

export const Sweep = component(
  'Sweep',
  {
    id: textOrNull(),
    project: text(),
    backend: text(),
    provider: textOrNull(),
    scope: textOrNull(),
    mode: oneOf(['report', 'delete', 'off']),
    state: oneOf(['ended', 'pending', 'dry-run'], { description: '`pending`: asked for, and not ended yet.' }),
    reasons: Type.Array(text(), { description: 'Why it listed.' }),
    startedAt: timeOrNull(),
    endedAt: timeOrNull(),
    outcome: Type.Unsafe<'clean' | 'unsettled' | 'failed' | null>({ enum: ['clean', 'unsettled', 'failed', null] }),
    why: Type.Array(text(), { description: 'Why it is not clean.' }),
    error: textOrNull(),
    guard: textOrNull({ description: '`passed`, or why the counts are implausible.' }),
    cells: Type.Array(ref(SweepCell), { description: 'The coverage matrix.' }),
    counts: Type.Object({ listed: whole(), expected: whole(), seen: whole(), groups: whole(), oursInScope: whole() }),
    verdicts: numbers(),
    plan,
    orphans: Type.Unsafe<SweepOrphanView[] | null>({
      description: 'The open orphans, 200 at most; null where an earlier sweep is read.',
      type: ['array', 'null'],
      items: ref(SweepOrphan),
    }),
  },
  'One sweep of one backend, with its certificate.',
)

const Node = Type.Unsafe<ExplanationNodeView>({
  description: 'A fact, who says so, since when, and what it rests on: nodes of the same form.',
  type: 'object',
  required: ['fact', 'source', 'at', 'children'],
  properties: {
    fact: { type: 'string' },
    source: { type: 'string' },
    at: timeOrNull(),
    children: { type: 'array', items: { type: 'object', additionalProperties: true, required: ['fact', 'source', 'at', 'children'] } },
  },
})

export const Explanation = component(
  'Explanation',
  {
    key: text(),
    type: text({ description: 'What the key names.' }),
    subject: text(),
    project: textOrNull(),
    verdict: text(),
    reason: textOrNull({ description: "The reason code of a sweep's verdict." }),
    at: time(),
    tree: Node,
    heldBack: Type.Array(ref(HeldBack)),
    change: text({ description: 'What would change this verdict.' }),
  },
  'Why something is as it is.',
)

export const sweepComponents = [SweepCell, HeldBack, SweepOrphan, Sweep, Explanation]
