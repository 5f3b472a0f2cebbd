/**
 * Every event and finding that Leasehold writes: one registry of stable codes. Texts are one line, in the past tense, without the names of actor and
 * target, which stand in fields of their own (orphans R85).
 */
export type Level = 'info' | 'warning' | 'error'

interface Entry<Payload> {
  level: Level
  text: (payload: Payload) => string
}
const entry = <Payload>(level: Level, text: (payload: Payload) => string): Entry<Payload> => ({ level, text })

interface GaveUp {
  name: string
  id: string
  backend: string
  /** How long it was tried; 0: there was nothing to try it with. */
  minutes: number
  error: string
}
const sentence = (text: string): string => `${`${text}`.trim().replace(/\.+$/, '')}.`
const gaveUp = (p: GaveUp): string =>
  `Gave up terminating instance ${p.name} (${p.id}) on ${p.backend} after ${p.minutes} min: ${sentence(p.error)}`

export const eventCodes = {
  'lease.created': entry<{ provider: string; ttlSeconds: number; idleSeconds: number }>(
    'info',
    (p) => `Lease reserved on ${p.provider}, for ${p.ttlSeconds} s at most and ${p.idleSeconds} s idle`,
  ),
  'lease.active': entry<{ cloudId: string; adopted: boolean }>('info', (p) =>
    p.adopted ? `Box ${p.cloudId} found again after an interruption and adopted` : `Box ${p.cloudId} ready`,
  ),
  'lease.released': entry<{ retained: boolean; returned?: boolean }>('info', (p) =>
    p.returned === true
      ? 'Lease released, box to be wiped for its fleet'
      : p.retained
        ? 'Lease released, box retained'
        : 'Lease released, box to be removed',
  ),
  'lease.expired': entry<{ clock: 'idle' | 'ttl' }>('info', (p) =>
    p.clock === 'ttl' ? 'Lease ended at its maximum lifetime' : 'Lease ended after its idle time',
  ),
  'lease.idle': entry<{ idleSeconds: number; leftSeconds: number; endsAt: string }>(
    'warning',
    (p) =>
      `Lease not touched for most of its idle time of ${p.idleSeconds} s; it ends in ${p.leftSeconds} s, at ${p.endsAt}, unless a heartbeat comes`,
  ),
  'lease.failed': entry<{ code: string; error: string }>('error', (p) => `Lease failed (${p.code}): ${p.error}`),
  'lease.cancelled': entry<Record<never, never>>('info', () => 'Create cancelled'),
  'attempt.uncertain': entry<{ number: number; error: string }>(
    'warning',
    (p) => `Attempt ${p.number} ended without a certain answer, a resource may exist: ${p.error}`,
  ),
  'attempt.found': entry<{ number: number; cloudId: string; verdict: 'adopt' | 'take-back' }>(
    'warning',
    (p) => `Attempt ${p.number} found by its ref as ${p.cloudId}: ${p.verdict === 'adopt' ? 'adopted' : 'taken back'}`,
  ),
  'attempt.absent': entry<{ number: number }>(
    'info',
    (p) => `Attempt ${p.number} ended: it was looked for for as long as it may lag, and nothing of it was found`,
  ),
  'attempt.late': entry<{ number: number; cloudId: string }>(
    'warning',
    (p) => `Attempt ${p.number} surfaced late as ${p.cloudId}, to be removed`,
  ),
  'removal.opened': entry<{ cause: string }>('info', (p) => `Removal ordered: ${p.cause}`),
  'removal.accepted': entry<{ cloudId: string }>('info', (p) => `Removal of ${p.cloudId} accepted by the provider`),
  'removal.failed': entry<{ failures: number; error: string; retryAt: string }>(
    'warning',
    (p) => `Removal failed (${p.failures} in a row), next try at ${p.retryAt}: ${p.error}`,
  ),
  'removal.held': entry<{ by: string }>('warning', (p) => `Removal held back by ${p.by}`),
  'removal.gone': entry<{ cloudId: string; proof: string }>('info', (p) => `${p.cloudId} proved gone: ${p.proof}`),
  'removal.member-gone': entry<{ cloudId: string; proof: string; left: number }>(
    'info',
    (p) => `${p.cloudId} proved gone, ${p.left} of its group left: ${p.proof}`,
  ),
  'removal.continued': entry<{ cause: string }>('info', (p) => `Removal that was given up goes on: ${p.cause}`),
  'removal.absence-acknowledged': entry<{ missing: string; reason: string }>(
    'warning',
    (p) => `Absence of ${p.missing} acknowledged, the removal goes on: ${p.reason}`,
  ),
  'removal.acknowledgement-lapsed': entry<{ missing: string; by: string }>(
    'warning',
    (p) => `${p.missing} is there again, and ${p.by} had answered for its absence: that counts no more`,
  ),
  'removal.overtaken': entry<{ cloudId: string }>(
    'warning',
    (p) => `Removal proves nothing of ${p.cloudId}, which its attempt recorded: that is taken back by a removal of its own`,
  ),
  'removal.left-to-sweeps': entry<{ cloudId: string }>(
    'warning',
    (p) => `What was found is gone; ${p.cloudId}, which its attempt recorded, is not proved gone: sweeps judge it by itself`,
  ),
  'removal.closed': entry<{ reason: string; left: string }>(
    'warning',
    (p) => `Removal closed by a person, nothing is proved: ${p.reason}; left behind: ${p.left}`,
  ),
  'removal.dropped': entry<{ why: string }>('warning', (p) => `Removal dropped, to be judged afresh: ${p.why}`),
  'removal.needs-person': entry<{ error: string }>('error', (p) => `Removal stopped until a person decides: ${p.error}`),
  // orphans R96, R97: these two name what they are about, because they are read by themselves.
  'terminate.gave-up.cleanup-retries': entry<GaveUp>('warning', (p) => `${gaveUp(p)} Orphan cleanup will retry deleting it.`),
  'terminate.gave-up.manual': entry<GaveUp & { how: string }>('error', (p) => `${gaveUp(p)} Terminate it manually: ${sentence(p.how)}`),
  'finding.opened': entry<{ code: string; message: string }>('warning', (p) => `Finding ${p.code}: ${p.message}`),
  'finding.changed': entry<{ code: string; message: string }>('warning', (p) => `Finding ${p.code} changed: ${p.message}`),
  'finding.standing': entry<{ code: string; message: string; timesSeen: number }>(
    'warning',
    (p) => `Finding ${p.code} still stands, seen ${p.timesSeen} times: ${p.message}`,
  ),
  'finding.resolved': entry<{ code: string }>('info', (p) => `Finding ${p.code} resolved`),
  'plan.approved': entry<{ removals: number; reason: string }>('warning', (p) => `Plan of ${p.removals} removals approved: ${p.reason}`),
  'plan.begun': entry<{ begun: number; dropped: number; pending: number }>(
    'info',
    (p) => `Approved plan: ${p.begun} removals begun, ${p.dropped} dropped because they changed, ${p.pending} not seen yet`,
  ),
  'retain.overdue': entry<{ retainedAt: string; retainUntil: string }>(
    'warning',
    (p) => `Box retained since ${p.retainedAt}, past its reminder of ${p.retainUntil}; release it with delete to remove it`,
  ),
  'clock.downtime': entry<{ gapSeconds: number; moved: number }>(
    'warning',
    (p) => `No coordinator ran for ${p.gapSeconds} s; ${p.moved} idle deadlines moved, downtime is not idleness`,
  ),
  'clock.jumped': entry<{ seconds: number }>(
    'error',
    (p) => `The wall clock ran ${p.seconds} s ahead of the monotonic one; expiry paused until they agree or the coordinator restarts`,
  ),
  'clock.agreed': entry<Record<never, never>>('info', () => 'The clocks agree again; expiry goes on'),
  'fleet.created': entry<{ backend: string; size: number; ttlSeconds: number }>(
    'info',
    (p) => `Fleet made: ${p.size} boxes are kept ready on ${p.backend}, each for ${p.ttlSeconds} s at least`,
  ),
  'fleet.scaled': entry<{ from: number; to: number }>('info', (p) => `Fleet scaled from ${p.from} to ${p.to}`),
  'fleet.paused': entry<Record<never, never>>('info', () => 'Fleet paused: nothing is made or replaced'),
  'fleet.resumed': entry<{ after: string }>('info', (p) => `Fleet goes on after it was ${p.after}`),
  'fleet.held': entry<{ why: string }>('error', (p) => `Fleet held, nothing is made until a person says so: ${p.why}`),
  'fleet.deleted': entry<Record<never, never>>('info', () => 'Fleet deleted; what nobody holds is taken back'),
  'fleet.box-ready': entry<{ cloudId: string; adopted: boolean }>('info', (p) =>
    p.adopted ? `Box ${p.cloudId} found again after an interruption and adopted` : `Box ${p.cloudId} ready, for whoever asks next`,
  ),
  'fleet.box-returned': entry<{ cloudId: string; proof: string }>('info', (p) => `Box ${p.cloudId} wiped and ready again: ${p.proof}`),
  'fleet.wipe-failed': entry<{ cloudId: string; why: string }>(
    'warning',
    (p) => `Box ${p.cloudId} not proved free of its last holder, to be removed: ${p.why}`,
  ),
  'hold.added': entry<{ reason: string; until: string | null }>(
    'info',
    (p) => `Hold added${p.until ? ` until ${p.until}` : ''}: ${p.reason}`,
  ),
  'hold.removed': entry<Record<never, never>>('info', () => 'Hold removed'),
  'freeze.added': entry<{ scope: string; reason: string }>(
    'warning',
    (p) => `Removals stopped in ${p.scope === '*' ? 'every scope' : p.scope}: ${p.reason}`,
  ),
  'freeze.removed': entry<{ scope: string }>('info', (p) => `Removals go on in ${p.scope === '*' ? 'every scope' : p.scope}`),
  'installation.stopped': entry<{ scope: string; why: string }>(
    'error',
    (p) =>
      `All removals stopped in ${p.scope === '*' ? 'every scope' : p.scope} until a person decides which database is the true one: ${p.why}`,
  ),
  'installation.adopted': entry<{ epoch: number; reason: string }>(
    'warning',
    (p) => `Database adopted as the one that decides, from epoch ${p.epoch} on; removals go on: ${p.reason}`,
  ),
  'installation.forked': entry<{ from: string; to: string; reason: string }>(
    'warning',
    (p) =>
      `Database forked from installation ${p.from}: it is ${p.to} from now on, holds nothing, and touches nothing of ${p.from}: ${p.reason}`,
  ),
  'installation.key-rotated': entry<{ key: string; reason: string }>('info', (p) => `New key ${p.key} for the keyed tag: ${p.reason}`),
  'sweep.let-pass': entry<{ why: string; reason: string }>(
    'warning',
    (p) => `Implausible counts let pass for one sweep (${p.why}): ${p.reason}`,
  ),
  'token.created': entry<{ role: string }>('info', (p) => `Token with role ${p.role} made`),
  'token.revoked': entry<Record<never, never>>('info', () => 'Token revoked'),
  'project.created': entry<Record<never, never>>('info', () => 'Project made'),
  'project.deleted': entry<Record<never, never>>('info', () => 'Project deleted; its backends drain'),
  'backend.created': entry<{ provider: string; scope: string | null }>(
    'info',
    (p) => `Backend for ${p.provider} made${p.scope ? `, account ${p.scope}` : ''}`,
  ),
  'backend.deleted': entry<Record<never, never>>('info', () => 'Backend deleted; it drains'),
} as const

export type EventCode = keyof typeof eventCodes
export type EventPayload<C extends EventCode> = Parameters<(typeof eventCodes)[C]['text']>[0]

/** orphans R86: the events of a deletion are kept for ever, at any setting, as its audit records are. */
export const isLasting = (code: string): boolean => code.startsWith('removal.') || code.startsWith('terminate.')

/** One line, whatever a provider or a user put into the payload. */
export const eventText = <C extends EventCode>(code: C, payload: EventPayload<C>): string =>
  (eventCodes[code] as Entry<EventPayload<C>>)
    .text(payload)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim()

/** What a finding says stands; it resolves by itself when that ends. */
export const findingCodes = {
  contradiction: 'Something carries our ref, and the facts disagree on whose it is: nothing is touched.',
  'retained-overdue': 'A box that a release kept is past its reminder.',
  orphan: 'Ours by two facts, and nobody wants it any more.',
  'malformed-ref': 'Something carries a ref tag that is no ref.',
  stuck: 'An instance has been pending for far longer than an attempt may take.',
  protected: 'It would be an orphan, and something protects it.',
  'left-behind': 'A person closed its removal, and what that left is there: nothing takes it back by itself.',
  'not-seen': 'A complete inventory did not show a box that should be there; a second one and an exact read decide.',
  missing: 'A box is gone, and nothing of ours removed it.',
  'scope-stranded': 'The account behind a backend is no longer the one that its boxes are in.',
  'denied-kind': 'A kind of resource may not be listed, so nothing is known of it.',
  'counts-implausible': 'A listing shows so much less than it should that nothing is concluded from it.',
  'plan-waiting': 'A plan of removals is beyond the limits and waits for a person.',
  'fleet-held': 'Boxes of a fleet ended one after the other without having served anybody: no more are made until a person says so.',
  'removal-needs-person': 'A removal can not succeed without a person.',
  elsewhere: 'This database was started where it did not live: it may be a copy, and removes nothing.',
  rewound: 'Something of ours is there that this database has forgotten: it may be a restored or copied one, and removes nothing there.',
  'unexplained-absence': 'A member of a group that is being taken back is gone, and nothing of ours explains it: the rest is not touched.',
} as const
export type FindingCode = keyof typeof findingCodes

/** Nothing but a person makes them better. The others resolve by themselves, or are dealt with in `delete` mode. */
export const needsPerson: ReadonlySet<FindingCode> = new Set([
  'contradiction',
  'retained-overdue',
  'stuck',
  'scope-stranded',
  'denied-kind',
  'left-behind',
  'counts-implausible',
  'plan-waiting',
  'fleet-held',
  'removal-needs-person',
  'unexplained-absence',
  'elsewhere',
  'rewound',
])
