/**
 * One step of a removal of several members: a fresh read of every survivor, a judgement, and then at most one of these: an explained absence is appended to
 * the progress, the next member is called, or the end is recorded (leases R78-R84). Nothing is called in a pass that appended something.
 */
import { cascadesNow, judgeGroup, type BoundMember, type GroupFacts } from '../model/group-removal.ts'
import { isFound, resourceKey } from '../model/removal.ts'
import { missingText, type MissingMember } from '../model/stopped.ts'
import type { Contradiction, Provider, ResourceIdentity } from '../providers/contract.ts'
import { answeredMembers } from '../store/audit.ts'
import { stillHeld } from '../store/due.ts'
import type { RemovalRow } from '../store/removals.ts'
import { applyHeld, applyPoll } from './remove-apply.ts'
import { readMember } from './remove-calls.ts'
import { applyDropped } from './remove-giveup.ts'
import type { Gone } from './remove-gone.ts'
import { judge, memberRead, type Judged } from './remove-judge.ts'
import type { RemovalWork } from './remove-load.ts'
import { applyLapsed, lapse } from './remove-lapsed.ts'
import { applyCascades, applyProgress, currentMember } from './remove-members.ts'
import { needsPerson } from './remove-stop.ts'
import type { RemovalTools } from './remove-tools.ts'
import { acknowledgedOf, boundMembers, identitiesOf, progressOf } from './removal-row.ts'
import type { Held } from './pipeline.ts'

export type Reads = ReadonlyMap<string, { identity: ResourceIdentity; judged: Judged }>

/** Fresh, and all at once: one slow answer delays no other. */
export const readAll = async (
  tools: RemovalTools,
  work: RemovalWork,
  provider: Provider,
  identities: readonly ResourceIdentity[],
  signal: AbortSignal,
): Promise<Reads> => {
  const read = await Promise.all(
    identities.map(async (identity) => ({
      identity,
      judged: judge(work, identity, await readMember(tools.context.keyring, work, provider, identity, signal), tools.installation),
    })),
  )
  return new Map(read.map((one) => [one.identity.immutableId, one]))
}

/** The label or option of any member protects all of them (leases R68). */
export const protectionOf = (reads: Reads): string | null => {
  for (const { judged, identity } of reads.values())
    if (judged.kind === 'present' && judged.protectedBy !== null) return `${identity.kind} ${identity.nativeId}: ${judged.protectedBy}`
  return null
}

/** All of these are proved absent, by exact reads; undefined: not all are. */
export const allAbsent = (held: Held, work: RemovalWork, reads: Reads): Gone | undefined => {
  const all: { identity: ResourceIdentity; proof: string }[] = []
  const contradictions: Contradiction[] = []
  for (const { identity, judged } of reads.values()) {
    if (judged.kind !== 'absent') return undefined
    all.push({ identity, proof: judged.proof })
    contradictions.push(...judged.contradictions)
  }
  const [first] = all
  return first && { held, work, identity: first.identity, proof: all.at(-1)?.proof ?? first.proof, contradictions, all }
}

const underWay = (removal: RemovalRow): { underWay?: string } => {
  const member = currentMember(removal)
  return member === undefined ? {} : { underWay: member.immutableId }
}

const takesSome = ({ takesAlong }: BoundMember): boolean => takesAlong !== null && takesAlong.length > 0

const factsOf = async (tools: RemovalTools, work: RemovalWork, reads: Reads): Promise<GroupFacts> => {
  const { removal } = work
  const isAsked = [...reads.values()].some((one) => one.judged.kind === 'absent') || boundMembers(removal).some(takesSome)
  const answered = isAsked ? await tools.context.store.read((session) => answeredMembers(session, removal.id)) : new Set<string>()
  return {
    members: boundMembers(removal),
    progress: progressOf(removal),
    answered,
    ...(removal.state === 'verifying' && removal.accepted_at !== null ? underWay(removal) : {}),
    acknowledged: new Map(
      acknowledgedOf(removal).flatMap((one) => (one.immutableId === null ? [] : [[one.immutableId, `${one.by}: ${one.reason}`]])),
    ),
    reads: new Map([...reads].map(([id, { judged }]) => [id, memberRead(judged)])),
  }
}

/** leases R83: only when a fresh read of every member, also of those in the progress, shows nothing left. */
const clear = async (tools: RemovalTools, held: Held, work: RemovalWork, provider: Provider): Promise<void> => {
  const { log, store } = tools.context
  const members = identitiesOf(work.removal)
  const reads = await readAll(tools, work, provider, members, held.signal)
  for (const { identity, judged } of reads.values()) {
    if (judged.kind === 'absent') continue
    if (judged.kind === 'failed')
      return tools.failed({ held, work, error: `${identity.kind} ${identity.nativeId}: ${judged.error}`, contradiction: null })
    log.warn({ removal: work.removal.id, member: identity.nativeId }, 'proved gone before, and it is read again: nothing is cleared')
    await store.write(async (tx) => (await stillHeld(tx, 'removals', [held])).size > 0 && lapse(tx, work, [identity]))
    const error = `${identity.kind} ${identity.nativeId} was proved gone, and is there again: nothing is called gone`
    return tools.failed({ held, work, error, contradiction: resourceKey(work.removal.provider, identity.location, identity.nativeId) })
  }
  const whole = allAbsent(held, work, reads)
  if (whole) await tools.finish(whole)
  tools.settle(work)
}

const missingOf = ({ immutableId, nativeId, kind }: ResourceIdentity | MissingMember): MissingMember => ({ immutableId, nativeId, kind })

export const stepGroup = async (tools: RemovalTools, held: Held, work: RemovalWork, provider: Provider): Promise<void> => {
  const { context } = tools
  const { store } = context
  const { removal } = work
  const progress = new Set(progressOf(removal))
  const survivors = identitiesOf(removal).filter((one) => !progress.has(one.immutableId))
  const reads = await readAll(tools, work, provider, survivors, held.signal)
  const facts = await factsOf(tools, work, reads)
  const cascades = cascadesNow(facts)
  // Written before anything else is called, and judged by from here on.
  if (cascades.size > 0) {
    await store.write((tx) => applyCascades(tx, held, removal, cascades))
    context.signals.wake('remove')
    return
  }
  const verdict = judgeGroup(facts)
  const of = (id: string): { identity: ResourceIdentity; judged: Judged } => {
    const one = reads.get(id)
    if (!one) throw new Error(`removal ${removal.id} has no member ${id}`)
    return one
  }
  // A label that protects is waited for, as everywhere; any other change is judged afresh.
  const by = verdict.kind === 'changed' || verdict.kind === 'next' ? protectionOf(reads) : null
  if (by !== null) return store.write((tx) => applyHeld(tx, held, work, by))
  switch (verdict.kind) {
    case 'done':
      return clear(tools, held, work, provider)
    case 'lapsed':
      await store.write((tx) => applyLapsed(tx, held, work, verdict.members))
      return context.signals.wake('remove')
    case 'append': {
      const { identity } = of(verdict.member.immutableId)
      await store.write((tx) => applyProgress(tx, { held, work, identity, proof: verdict.proof }))
      context.signals.wake('remove')
      return tools.settle(work)
    }
    case 'failed': {
      const { location, nativeId } = verdict.member
      const contradiction = verdict.contradiction ? resourceKey(removal.provider, location, nativeId) : null
      return tools.failed({ held, work, error: verdict.error, contradiction })
    }
    case 'changed': {
      if (isFound(removal.cause)) return store.write((tx) => applyDropped(tx, held, work, verdict.why))
      const { location, nativeId } = verdict.member
      const error = `it is not what was bound: ${verdict.why}`
      return tools.failed({ held, work, error, contradiction: resourceKey(removal.provider, location, nativeId) })
    }
    case 'unexplained': {
      const missing = verdict.members.map(missingOf)
      const error = `${missing.map(missingText).join(', ')} of its group ${missing.length === 1 ? 'is' : 'are'} gone, and nothing of ours explains it: the rest is not touched`
      return store.write((tx) => needsPerson(tx, held, work, error, { code: 'unexplained-absence', missing }))
    }
    case 'next': {
      const { identity, judged } = of(verdict.member.immutableId)
      if (judged.kind !== 'present') throw new Error(`removal ${removal.id}: ${identity.nativeId} was not read`)
      const answer = await tools.take(held, work, provider, identity, judged)
      // Read once more by the next pass, which asks for no second call while it goes.
      if (answer?.kind === 'gone') {
        await store.write((tx) => applyPoll(tx, held, work, 0))
        context.signals.wake('remove')
      }
    }
  }
}
