/** Every reason for a verdict: one registry of stable codes, from which outcome, findings, `explain` and the docs are made. */
import type { Level } from './codes.ts'

export type VerdictKind =
  | 'tracked'
  | 'held'
  | 'inFlight'
  | 'settling'
  | 'orphan'
  | 'missing'
  | 'foreign'
  | 'contradiction'
  | 'protected'
  | 'unseen'

interface Reason {
  level: Level
  text: string
  /** Must it be looked at again soon, or is it dealt with once it is recorded (orphans R76, R77)? */
  settled: boolean
  /** Does a person learn of it, as a durable finding? */
  finding: boolean
  /** What would change this verdict. */
  change: string
}

const entry = (level: Level, text: string, change: string, more: { settled?: false; finding?: true } = {}): Reason => ({
  level,
  text,
  change,
  settled: more.settled ?? true,
  finding: more.finding ?? false,
})
const again = { settled: false } as const
const told = { finding: true } as const

export const verdictReasons = {
  'tracked.bound': entry('info', 'It is the resource that an active instance is bound to.', 'the end of its instance'),
  'tracked.attached': entry('info', 'It is attached to the resource that an active instance is bound to.', 'the end of that instance'),

  'held.other-project': entry('info', 'Its ref belongs to another project of this installation.', 'nothing here: that project judges it'),
  'held.retained': entry('info', 'A release kept it for its holder.', 'a release of its lease with delete'),
  'held.live-lease': entry('warning', 'A live lease holds it, although its instance has ended.', 'the end of its lease', told),

  'inFlight.pending': entry('info', 'Its owner is still being made, and this may be it.', 'the end of its owner’s attempt', again),
  'inFlight.stuck': entry(
    'error',
    'Its owner has been pending for more than twice the time that an attempt may take.',
    'its owner becoming active or ending',
    { ...again, ...told },
  ),
  'inFlight.attempt-open': entry('info', 'The attempt that made it is still under way.', 'the end of that attempt', again),
  'inFlight.terminating': entry('info', 'Its owner is being terminated.', 'the end of that termination, or its giving up', again),
  'inFlight.removal-open': entry('info', 'A removal of it is under way.', 'the end of that removal', again),
  'inFlight.going': entry(
    'info',
    'The provider says that it is on its way out.',
    'its disappearance, or the provider saying that it stays',
    again,
  ),

  'settling.changed': entry(
    'info',
    'Something about its owner changed so close to the listing that the listing may be older.',
    'a listing that began after the change and the margin',
    again,
  ),

  'orphan.owner-gone': entry('warning', 'Its ref is ours and its owner’s record is gone.', 'a hold or a keep label on it', told),
  'orphan.owner-ended': entry('warning', 'Its owner has ended.', 'a hold or a keep label on it', told),
  'orphan.gave-up': entry('warning', 'Its owner ended, and taking it back was given up.', 'a hold or a keep label on it', told),
  'orphan.not-the-bound-one': entry(
    'warning',
    'Its owner is alive and bound to another resource.',
    'a hold or a keep label on it, or its owner being bound to it',
    told,
  ),
  'orphan.lives-elsewhere': entry('warning', 'Its owner is alive in another account.', 'a hold or a keep label on it', told),

  'missing.proved': entry(
    'error',
    'An active instance is bound to it, two complete inventories did not show it and an exact read did not find it.',
    'nothing: its lease ends with resource_missing',
    { ...again, ...told },
  ),
  'missing.owner': entry(
    'warning',
    'It was made with the resource that an active instance is bound to, and that one is not listed.',
    'that resource being listed again, or being proved missing',
    again,
  ),

  'foreign.unknown-ref': entry('info', 'Nobody here issued its ref.', 'nothing: it is never touched'),
  'foreign.malformed-ref': entry('warning', 'What it carries as a ref is none.', 'nothing: it is never touched', told),
  'foreign.other-installation': entry('info', 'It belongs to another installation.', 'nothing: it is never touched'),
  'foreign.former-installation': entry(
    'info',
    'It belongs to the installation that this one was forked from.',
    'nothing here: that installation judges it',
  ),

  'contradiction.unknown-ref-of-ours': entry(
    'error',
    'It is provably of this installation, and no project here knows its ref: this database may be a copy or restored.',
    'a person deciding which database is the true one: "leasehold installation adopt" or "fork"',
    told,
  ),
  'contradiction.newer-epoch': entry(
    'error',
    'It was provably made by this installation after the newest start that this database knows of: it may be a copy or restored.',
    'a person deciding which database is the true one: "leasehold installation adopt" or "fork"',
    told,
  ),
  'contradiction.wrong-mac': entry(
    'error',
    'Its tags name us, and its keyed tag was not made by a key of this installation.',
    'nothing: a person decides',
    told,
  ),
  'contradiction.no-mac': entry(
    'error',
    'Its tags name us, and the keyed tag that was written at its creation is not there.',
    'its own leasehold_mac tag being on it again',
    told,
  ),
  'contradiction.other-installation': entry(
    'error',
    'It is the resource that we recorded, and its tag names another installation.',
    'its tag naming this installation again',
    told,
  ),
  'contradiction.no-provisioning-data': entry(
    'error',
    'Its owner is active and has no record of its resource.',
    'the record being completed, or its owner ending',
    { ...again, ...told },
  ),
  'contradiction.other-scope': entry('error', 'It was listed in another account than the one swept.', 'a listing of its own account', told),
  'contradiction.wrong-kind': entry('error', 'It is of a kind that no attempt of its ref made.', 'nothing: a person decides', told),
  'contradiction.tags-only': entry(
    'error',
    'Only its tags name us, and tags can be copied; nothing that was fixed at its creation does.',
    'a record or a fact fixed at creation that names it',
    told,
  ),
  'contradiction.tags-disagree': entry(
    'error',
    'Its tags and what was fixed at its creation name different makers.',
    'its tags naming the attempt that made it',
    told,
  ),
  'contradiction.unknown-attempt': entry('error', 'The attempt that it names is none of its ref’s.', 'nothing: a person decides', told),
  'contradiction.attempt-elsewhere': entry(
    'error',
    'The attempt that it names was made in another account or location.',
    'nothing: a person decides',
    told,
  ),
  'contradiction.another-identity': entry('error', 'The attempt that it names made another resource.', 'nothing: a person decides', told),
  'contradiction.shared': entry(
    'error',
    'Several resources that name the same attempt share it.',
    'its being attached to one of them only',
    told,
  ),

  'protected.hold': entry('info', 'A person holds it.', 'the end of that hold', told),
  'protected.keep': entry('info', 'A keep label protects it.', 'the keep label being removed or set to false', told),
  'protected.labels-unreadable': entry(
    'warning',
    'Its labels can not be read, and one of them may protect it.',
    'its labels being readable',
    { ...again, ...told },
  ),
  'protected.attached-outside': entry(
    'warning',
    'It is attached to something that is not of its group.',
    'its being detached from that',
    told,
  ),
  'protected.report-only': entry('warning', 'The provider’s rules forbid taking it back in this shape.', 'that shape changing', told),
  'protected.member-not-listed': entry(
    'warning',
    'It was protected when all of it was listed, and what belongs to it can not be listed now.',
    'a complete listing of that kind',
    told,
  ),
  'protected.removal-unreadable': entry(
    'error',
    'The record of a removal of it can not be read here: nobody knows what of it was taken away, so nothing of it is.',
    'a coordinator that can read that record, or a person who ends by hand what is left',
    told,
  ),
  'protected.removal-closed': entry(
    'error',
    'A person closed its removal, and what is left of it is no whole group: nothing takes it back by itself.',
    'its end by hand, or its being a whole group again',
    told,
  ),

  'unseen.owner-kind': entry(
    'info',
    'Its owner resource is not listed, and not every resource of that kind was.',
    'a complete listing of the owner’s kind',
    again,
  ),
  'unseen.inconsistent': entry('warning', 'The listing showed it twice, with different facts.', 'a listing that shows it once', again),
} as const satisfies Record<`${VerdictKind}.${string}`, Reason>

export type VerdictReason = keyof typeof verdictReasons
export type ReasonOf<K extends VerdictKind> = Extract<VerdictReason, `${K}.${string}`>

export const reasonOf = (code: VerdictReason): Reason => verdictReasons[code]
