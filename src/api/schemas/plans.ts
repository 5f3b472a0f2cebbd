/** Plans of removals: what waits for a person, and its approval. */
import { Type } from 'typebox'
import { planStates } from '../../model/plans.ts'
import { closed, component, limit, may, oneOf, ref, text, textOrNull, time, timeOrNull, whole } from './kinds.ts'

export const planBody = closed({
  backend: may(textOrNull({ minLength: 1, maxLength: 100, description: 'Missing or null: every backend of the project.' })),
  project: may(textOrNull({ minLength: 1, maxLength: 100, description: "Missing or null: the token's own, else `default`." })),
})
export const planQuery = closed({
  project: may(text({ minLength: 1, description: 'Only of this project.' })),
  backend: may(text({ minLength: 1, description: 'Only of this backend.' })),
  state: may(oneOf(planStates, { description: 'Only in this state.' })),
  limit: limit(),
})
export const planId = closed({ id: text({ minLength: 1, description: 'The id, or at least the first 12 characters of its hash.' }) })
export const approveBody = closed({
  reason: text({ minLength: 1, maxLength: 500, description: 'Why; kept in the audit.' }),
})

export const PlannedRemoval = component(
  'PlannedRemoval',
  {
    target: text({ description: '`provider/location/native-id` of what leads its group.' }),
    provider: text(),
    kind: text(),
    rule: text({ description: 'The reason of its verdict.' }),
    fingerprint: text(),
    name: text(),
    ref: text(),
    findingID: textOrNull(),
    firstSeenAt: time(),
    lastSeenAt: time(),
    timesSeen: whole(),
    proof: Type.Array(text(), { description: 'What the verdict stands on.' }),
  },
  'One group that a plan takes back. If anything of it changes before it begins, it is dropped from the plan.',
)

export const Plan = component(
  'Plan',
  {
    id: text({ description: '`pl_` and the SHA-256 of what it takes back.' }),
    project: text(),
    backend: text(),
    provider: text(),
    scope: text(),
    state: oneOf(planStates),
    why: textOrNull({ description: 'Which limit it is beyond; null: a person asked for it.' }),
    removals: Type.Array(ref(PlannedRemoval)),
    pending: Type.Array(text(), { description: 'Targets that were neither begun nor dropped yet.' }),
    dropped: Type.Array(text(), { description: 'Targets that changed, or were held, before they could begin.' }),
    held: Type.Array(Type.Object({ target: text(), by: text() }), { description: 'Those of them that a hold stopped, and which.' }),
    warning: may(text({ description: 'Of one just approved: what stops its removals for now.' })),
    oursInScope: whole({ description: 'Groups of ours in the account when it was made.' }),
    madeBy: text(),
    madeAt: time(),
    seenAt: time(),
    approvedBy: textOrNull(),
    approvedAt: timeOrNull(),
    approvalReason: textOrNull(),
    settledAt: timeOrNull(),
  },
  'What would be taken back, exactly; it begins when somebody approves it.',
)

export const planComponents = [PlannedRemoval, Plan]
