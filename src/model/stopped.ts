/** Why a removal waits for a person, as it is kept with it, what stood of it then, and what a person answered for (leases R80, R91). */
import type { ScopeId } from './ids.ts'

export interface MissingMember {
  /** Null: it was never bound, and only its kind is known. */
  immutableId: string | null
  nativeId: string | null
  kind: string
}

/** A member as it is known by name. */
export interface SeenMember {
  scope: ScopeId
  location: string
  kind: string
  nativeId: string
  immutableId: string
  facts: Record<string, string>
}

/** What a look at the provider showed of it, for people: nothing is proved by it, and nothing is taken back on its word. */
export interface Seen {
  /** ms */
  at: number
  /** In the order in which they can go; what could not be read is among them. */
  there: readonly SeenMember[]
  /** Why there may be more, or less; null: it was read to the end. */
  unknown: string | null
}

export interface Stopped {
  /**
   * `incomplete`: companions were missing before anything was bound; `unexplained-absence`: a bound member is gone, and nothing of ours explains it; `looked`:
   * it waits for no such word, and what stood of it when it was given up or closed is kept.
   */
  code: 'incomplete' | 'unexplained-absence' | 'looked'
  missing: readonly MissingMember[]
  seen?: Seen
}

/** @returns what is kept with it once it was looked at: why it waits stays */
export const withSeen = (stopped: Stopped | null, seen: Seen): Stopped => ({ ...(stopped ?? { code: 'looked', missing: [] }), seen })

/** Does it wait for a person to say why something is gone? */
export const asksWhy = (stopped: Stopped | null): stopped is Stopped => stopped !== null && stopped.code !== 'looked'

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
