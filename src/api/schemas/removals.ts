/** Removals: how far each is, and what a person says of it. */
import { Type } from 'typebox'
import { removalStates } from '../../model/wire.ts'
import { closed, component, flag, limit, may, oneOf, ref, text, textOrNull, time, timeOrNull, whole } from './kinds.ts'

export const removalQuery = closed({
  project: may(text({ minLength: 1, description: 'Only of this project.' })),
  stuck: may(flag({ description: 'Only those that go no further without a person, as far as anybody can tell.' })),
  limit: limit(),
})
export const removalId = closed({ id: text({ minLength: 1 }) })
const reason = () => text({ minLength: 1, maxLength: 500, description: 'Why; kept in the audit.' })
export const acknowledgeBody = closed({
  fingerprint: text({ minLength: 1, maxLength: 64, description: 'Of the removal as it was looked at, or at least its first 12 digits.' }),
  reason: reason(),
})
export const closeBody = closed({
  fingerprint: may(text({ minLength: 1, maxLength: 64, description: 'Of the removal as it was looked at; missing: as it is.' })),
  reason: reason(),
})

export const RemovalMember = component(
  'RemovalMember',
  {
    location: text(),
    kind: text(),
    nativeID: text(),
    immutableID: text(),
    state: oneOf(['left', 'gone', 'missing'], { description: 'gone: proved; missing: not found, and nothing of ours explains that.' }),
  },
  'One resource of a group that is taken back.',
)

export const Removal = component(
  'Removal',
  {
    id: text(),
    state: oneOf(removalStates),
    version: whole(),
    project: text(),
    backend: text(),
    provider: text(),
    scope: text(),
    location: text(),
    name: text(),
    ref: text(),
    instanceID: text(),
    leaseID: textOrNull(),
    owner: textOrNull({ description: 'Of its lease.' }),
    cause: text(),
    openedAt: time(),
    ageSeconds: whole(),
    failures: whole({ description: 'In a row.' }),
    reason: textOrNull({ description: 'Why it stands still, or its last failure.' }),
    retryAt: timeOrNull(),
    waitsUntil: timeOrNull(),
    heldBy: textOrNull(),
    stuck: flag({ description: 'It goes no further without a person, as far as anybody can tell.' }),
    nextStep: text(),
    members: Type.Array(ref(RemovalMember), { description: 'In the order in which they go.' }),
    fingerprint: text({ description: 'Stands for exactly what is shown here.' }),
    left: Type.Array(text(), { description: 'By name what is not proved gone, as far as anybody knows.' }),
    leftSeenAt: timeOrNull(),
    missing: Type.Array(text(), { description: 'What is gone without an explanation.' }),
    closedAt: timeOrNull(),
    closedBy: textOrNull(),
    closedReason: textOrNull(),
  },
  'The durable act of taking back what one attempt made.',
)

export const removalComponents = [RemovalMember, Removal]
