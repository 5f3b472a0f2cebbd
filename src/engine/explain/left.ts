/** Of what is gone something may be left: a disk whose machine was taken back. What is gone is told as gone, and what is left by its own verdict beside it. */
import type { FindingRow } from '../../store/findings.ts'
import type { ShownMember } from '../sweep/shown.ts'
import { keyOfAttempt, type Owner } from './owner.ts'
import { node, type Conclusion, type Told } from './told.ts'

const providerOf = (owner: Owner): string => owner.instance?.provider ?? owner.lease?.provider ?? ''

/** Does the finding show what an attempt itself recorded, or only something that was made with it? */
export const showsRecorded = (finding: FindingRow, owner: Owner): boolean => {
  const members = (JSON.parse(finding.evidence) as { members?: ShownMember[] }).members ?? []
  return owner.attempts.some(
    (attempt) =>
      keyOfAttempt(providerOf(owner), attempt) === finding.target_id ||
      members.some((one) => one.nativeId === attempt.native_id && one.location === attempt.location),
  )
}

interface ProofBody {
  absent?: { kind?: string; nativeId?: string }
  proof?: string
}

/** In the words of the newest proof that is recorded. */
const proofText = (owner: Owner): string => {
  const record = owner.audit.findLast((one) => one.kind === 'proof')
  const { absent, proof } = record ? (JSON.parse(record.body) as ProofBody) : {}
  return proof === undefined ? '' : ` ${absent?.kind ?? 'resource'} ${absent?.nativeId ?? ''}: ${proof}.`
}

/** @param left the finding about what is left, explained */
export const withLeft = (gone: Conclusion, owner: Owner, finding: FindingRow, left: Told): Conclusion => ({
  ...gone,
  text: `${gone.text}${proofText(owner)} Something that was made with it is left: ${finding.target_id} (${left.verdict}).`,
  heldBack: left.heldBack.map(({ what, until }) => ({ what: `of what is left: ${what}`, until })),
  change: `nothing changes that it is gone; of what is left (explain ${finding.target_id}): ${left.change}`,
})

export const leftNode = (finding: FindingRow, left: Told) =>
  node('finding', finding.last_seen_at, `left of it: ${finding.target_id} (${finding.target_name})`, [left.tree])
