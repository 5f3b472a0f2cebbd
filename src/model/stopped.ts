/** Why a removal waits for a person, as it is kept with it, and what a person answered for (leases R80, R91). */

export interface MissingMember {
  /** Null: it was never bound, and only its kind is known. */
  immutableId: string | null
  nativeId: string | null
  kind: string
}

export interface Stopped {
  /** `incomplete`: companions were missing before anything was bound; `unexplained-absence`: a bound member is gone, and nothing of ours explains it. */
  code: 'incomplete' | 'unexplained-absence'
  missing: readonly MissingMember[]
}

export interface Acknowledged extends MissingMember {
  by: string
  reason: string
  /** ms */
  at: number
}

/** leases R91: a person's word that something is gone counts no more once it is read again. Of what was never bound only the kind is known. */
export const isLapsed = (one: Acknowledged, there: readonly { kind: string; immutableId: string }[]): boolean =>
  there.some((member) => (one.immutableId === null ? one.kind === member.kind : one.immutableId === member.immutableId))

export const missingText = ({ kind, nativeId }: MissingMember): string => (nativeId === null ? `a ${kind}` : `${kind} ${nativeId}`)

/** As the fingerprint names them. */
export const missingKeys = (stopped: Stopped | null): string[] =>
  stopped === null ? [] : stopped.missing.map((one) => one.immutableId ?? `kind ${one.kind}`)
