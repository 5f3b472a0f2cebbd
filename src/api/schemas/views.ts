/** What is read besides leases: the other views of `model/wire.ts`. */
import { Type } from 'typebox'
import { leaseStates, roles, type ErrorAnswer as ErrorView, type QuarantineView } from '../../model/wire.ts'
import { errorCodes } from '../../model/errors.ts'
import { Stop } from './installation.ts'
import { anything, component, flag, may, numbers, oneOf, ref, text, textOrNull, time, timeOrNull, unknowns, whole, texts } from './kinds.ts'

export const instanceStates = ['pending', 'provisioning', 'idle', 'busy', 'terminating', 'terminated'] as const
const levels = ['info', 'warning', 'error'] as const
export const targetTypes = ['resource', 'instance', 'lease', 'project', 'scope'] as const

export const ErrorAnswer = Type.Unsafe<ErrorView>({
  $id: 'Error',
  description: 'Every error: a stable code, and what happened, to what, and what to do next.',
  type: 'object',
  required: ['error', 'message'],
  properties: {
    error: {
      type: 'string',
      description: Object.entries(errorCodes)
        .map(([code, { status, text: meaning }]) => `\`${code}\` (${status}): ${meaning}`)
        .join('\n'),
    },
    message: { type: 'string' },
  },
  additionalProperties: true,
})

export const Attempt = component(
  'Attempt',
  {
    id: text(),
    number: whole(),
    outcome: oneOf(['open', 'bound', 'absent', 'abandoned']),
    openedAt: time(),
    endedAt: timeOrNull(),
    deadlineAt: time(),
    error: textOrNull(),
  },
  'One try to create a resource for an instance.',
)

export const Instance = component(
  'Instance',
  {
    id: text(),
    ref: text({ description: 'Owned by this instance for ever, and written on everything that is created for it.' }),
    name: text(),
    state: oneOf(instanceStates),
    project: text(),
    backend: text(),
    provider: text(),
    scope: textOrNull(),
    location: textOrNull(),
    leaseID: textOrNull(),
    fleet: textOrNull({ description: 'The fleet that it is of.' }),
    cloudID: textOrNull(),
    cloudImmutableID: textOrNull(),
    createdAt: time(),
    changedAt: time(),
    terminatedAt: timeOrNull(),
    gaveUpAt: timeOrNull(),
    removalError: textOrNull(),
    attempts: Type.Array(ref(Attempt)),
    unknown: unknowns(),
  },
  'The record that provisions.',
)

export const Target = component('Target', { type: text(), id: text(), name: text() }, 'What something is about.')

export const Event = component(
  'Event',
  {
    id: text(),
    seq: whole({ description: 'Position in the feed.' }),
    at: time(),
    code: text(),
    level: oneOf(levels),
    project: textOrNull(),
    actor: text(),
    message: text(),
    targets: Type.Array(ref(Target)),
    payload: anything(),
  },
  'Something that happened.',
)

const Quarantine = Type.Unsafe<QuarantineView | null>({
  description: 'How far an orphan is from the time at which it may be taken back; null for everything else.',
  type: ['object', 'null'],
  required: ['since', 'timesSeen', 'lastSeenAt', 'eligibleAt'],
  properties: { since: time(), timesSeen: whole({ description: 'Complete inventories.' }), lastSeenAt: time(), eligibleAt: time() },
})

export const Finding = component(
  'Finding',
  {
    id: text(),
    code: text(),
    state: oneOf(['open', 'resolved']),
    project: textOrNull(),
    backend: textOrNull(),
    ref: textOrNull(),
    reason: textOrNull({ description: 'The reason code of the verdict that a sweep found it by.' }),
    quarantine: Quarantine,
    target: ref(Target),
    message: text(),
    evidence: anything(),
    firstSeenAt: time(),
    lastSeenAt: time(),
    timesSeen: whole(),
    resolvedAt: timeOrNull(),
    unknown: unknowns(),
  },
  'Something that was seen and needs time or a person.',
)

export const Token = component(
  'Token',
  {
    id: text(),
    name: text(),
    role: oneOf(roles),
    project: textOrNull({ description: 'null: every project.' }),
    createdAt: time(),
    expiresAt: timeOrNull(),
    revokedAt: timeOrNull(),
  },
  'A bearer token, without its secret.',
)

export const Project = component(
  'Project',
  { name: text(), createdAt: time(), deletedAt: timeOrNull(), defaultBackend: textOrNull() },
  'Who owns.',
)

export const Backend = component(
  'Backend',
  {
    name: text(),
    project: text(),
    provider: text(),
    scope: textOrNull({ description: 'The account behind it, as the provider reports it.' }),
    isDefault: flag(),
    config: anything({ description: 'Secrets are shown as `***`.' }),
    createdAt: time(),
    deletedAt: timeOrNull(),
  },
  "A project's configuration of a provider.",
)

export const Fleet = component(
  'Fleet',
  {
    name: text(),
    project: text(),
    backend: text(),
    state: oneOf(['running', 'paused', 'held', 'draining'], {
      description: 'held: boxes ended one after the other without having served, so no more are made until it is scaled or resumed.',
    }),
    size: whole({ description: 'How many are to be ready.' }),
    ready: whole(),
    coming: whole({ description: 'Under way, being wiped, or not looked at lately.' }),
    taken: whole({ description: 'Those that leases have, or that a release retained.' }),
    ending: whole(),
    setAside: whole({ description: 'Neither given out nor counted: a stop of this database, a hold, or a contradiction.' }),
    setAsideWhy: textOrNull(),
    ttlSeconds: whole({ description: 'What each must still be able to give; one with less life left is replaced.' }),
    labels: texts(),
    createdBy: text(),
    createdAt: time(),
    changedAt: time(),
    pausedAt: timeOrNull(),
    heldAt: timeOrNull(),
    heldWhy: textOrNull(),
    deletedAt: timeOrNull(),
  },
  'Boxes of a backend that are kept ready.',
)

export const Hold = component(
  'Hold',
  {
    id: text(),
    targetType: oneOf(targetTypes),
    targetID: text(),
    project: textOrNull(),
    reason: text(),
    createdBy: text(),
    createdAt: time(),
    until: timeOrNull(),
    removedAt: timeOrNull(),
    warning: may(text({ description: 'Of one just added on what nobody has seen yet.' })),
  },
  'A person\'s "not this": what it is on is not removed.',
)

export const Freeze = component(
  'Freeze',
  { scope: text({ description: '`*` stops every scope.' }), reason: text(), createdBy: text(), createdAt: time() },
  'The stop switch of removals.',
)

export const Audit = component(
  'LeaseAudit',
  {
    leaseID: text(),
    slug: text(),
    state: oneOf(leaseStates),
    project: text(),
    owner: text(),
    provider: text(),
    cloudID: textOrNull(),
    expiresAt: time(),
    retainUntil: timeOrNull(),
    debt: Type.Array(text(), {
      description: 'cleanup-error, cleanup-open, gave-up, may-exist, retained-overdue, removal-closed; state: asked for by its state.',
    }),
    cleanupAttempts: whole(),
    cleanupError: textOrNull(),
    cleanupRetryAt: timeOrNull(),
    cloudStatus: oneOf(['found', 'missing', 'error'], {
      description: 'What the provider says now. A failed read is error, never missing.',
    }),
    cloudState: textOrNull(),
    message: textOrNull(),
  },
  'A lease beside what its provider says of it.',
)

const Replica = component(
  'Replica',
  {
    id: text(),
    host: text(),
    pid: whole(),
    version: text(),
    startedAt: time(),
    aliveAt: time(),
    clockSkewMs: whole({ description: "Its wall clock minus the database's clock, at its last word." }),
    self: flag(),
    locks: whole(),
    locksOf: Type.Array(
      Type.Object({ pipeline: oneOf(['provision', 'expire', 'remove', 'sweep']), count: whole(), oldestRenewedAt: time() }),
    ),
  },
  'A process that works on this database.',
)
export const Circuit = component(
  'Circuit',
  { provider: text(), scope: text(), failures: whole(), failedAt: time(), openUntil: timeOrNull(), error: text() },
  'An account whose listings fail. From the third failure in a row on it is left alone for 5, 15, 45, then 60 minutes.',
)
const Budget = component(
  'Budget',
  {
    provider: text(),
    scope: text(),
    operation: oneOf(['all', 'create', 'read', 'delete'], { description: '`all`: the account as a whole, by a setting.' }),
    callsPerSecond: Type.Union([Type.Number(), Type.Null()]),
    left: Type.Number({ description: 'Calls saved up; below 0: made on credit.' }),
    blockedUntil: timeOrNull(),
    throttledAt: timeOrNull(),
    throttles: whole({ description: 'Throttled answers since its rate was last free.' }),
  },
  'How many calls an account gets now.',
)
const SweepMode = component(
  'SweepMode',
  {
    provider: text(),
    mode: oneOf(['report', 'delete', 'off']),
    origin: text({ description: '`default`, or the variable that says so.' }),
    intervalSeconds: Type.Number(),
    graceSeconds: Type.Number(),
    canList: flag({ description: 'false: it can not be swept at all.' }),
    backends: whole(),
  },
  'How the sweeps of a provider run here.',
)
const Trouble = component(
  'Trouble',
  {
    removalID: text(),
    name: text(),
    project: text(),
    backend: text(),
    leaseID: textOrNull(),
    state: oneOf(['preparing', 'removing', 'verifying', 'gone', 'gave-up', 'closed']),
    failures: whole({ description: 'In a row.' }),
    error: textOrNull(),
    retryAt: timeOrNull(),
  },
  'A removal that fails or was given up.',
)
export const Status = component(
  'Status',
  {
    version: text(),
    installation: text(),
    database: oneOf(['sqlite', 'postgresql']),
    now: time(),
    clockSkewMs: whole(),
    expiryPaused: textOrNull(),
    freezes: Type.Array(ref(Freeze)),
    stops: Type.Array(ref(Stop)),
    circuits: Type.Array(ref(Circuit)),
    budgets: Type.Array(ref(Budget), { description: 'Only what a setting or a provider limits.' }),
    waiting: Type.Object({ creates: whole(), removals: whole(), sweeps: whole() }),
    sweeps: Type.Array(ref(SweepMode)),
    troubles: Type.Array(ref(Trouble), { description: 'Newest failure first, 20 at most.' }),
    findingsByCode: numbers(),
    forPerson: Type.Array(text(), { description: 'Which of these codes only a person makes better.' }),
    replicas: Type.Array(ref(Replica)),
    counts: Type.Object({ leases: numbers(), instances: numbers(), removals: numbers(), findings: whole() }),
  },
  'The coordinator about itself.',
)
export const Check = component(
  'Check',
  { name: text(), level: oneOf(['ok', 'warning', 'error']), message: text(), remedy: textOrNull() },
  'One thing that the doctor looked at.',
)

export const shared = [
  ErrorAnswer,
  Attempt,
  Instance,
  Target,
  Event,
  Finding,
  Token,
  Project,
  Backend,
  Hold,
  Fleet,
  Freeze,
  Audit,
  Replica,
  Circuit,
  Budget,
  SweepMode,
  Trouble,
  Status,
  Check,
]
