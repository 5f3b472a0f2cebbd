/**
 * What a release claims: which objects are its own by the word of its revisions. A claim is made before the object and ends only when the object is
 * verified gone, so at no moment is there an object of a release that nothing claims (prune R71, R79; 7.1).
 */
import { type SwarmKind, swarmKinds } from './names.ts'

export interface Claim {
  /** Of one object of one release, the same in every revision; on the object as the label `leasehold.claim`. */
  id: string
  kind: SwarmKind
  /** As it is called on the Swarm. */
  name: string
}

/** A claim with the Swarm's own id of the object; null: not made yet, or not known. A volume has none. */
export interface HeldClaim extends Claim {
  object: string | null
}

/** Claim ids to object ids, `''` where none is known. A claim that is not in it has ended. */
export type ClaimObjects = Readonly<Record<string, string>>

/** What one revision says of claims: what it declares, what it carries on for earlier ones, and which of both still stand. */
export interface ClaimSource {
  number: number
  claims: readonly Claim[]
  carried: readonly HeldClaim[]
  objects: ClaimObjects
}

export const isSwarmKind = (text: unknown): text is SwarmKind => swarmKinds.some((kind) => kind === text)

const held = (claim: Claim, objects: ClaimObjects): HeldClaim => {
  const object = objects[claim.id] ?? ''
  return { id: claim.id, kind: claim.kind, name: claim.name, object: object === '' ? null : object }
}
const has = (objects: ClaimObjects, id: string): boolean => Object.hasOwn(objects, id)
const everyClaim = (source: ClaimSource): Claim[] => [...source.claims, ...source.carried]

/** The claims of one revision that have not ended. */
export const standing = (source: ClaimSource): HeldClaim[] =>
  everyClaim(source)
    .filter((claim) => has(source.objects, claim.id))
    .map((claim) => held(claim, source.objects))

/**
 * All that a release still claims. The newest revision that speaks of a claim decides; what none speaks of stands in what was folded.
 * @param sources in any order
 */
export const liveClaims = (sources: readonly ClaimSource[], folded: readonly HeldClaim[]): HeldClaim[] => {
  const decided = new Map<string, HeldClaim | null>()
  for (const source of sources.toSorted((a, b) => b.number - a.number)) {
    for (const claim of everyClaim(source)) {
      if (decided.has(claim.id)) continue
      decided.set(claim.id, has(source.objects, claim.id) ? held(claim, source.objects) : null)
    }
  }
  for (const claim of folded) if (!decided.has(claim.id)) decided.set(claim.id, claim)
  return [...decided.values()].filter((claim) => claim !== null)
}

/** What a new revision carries: all that lives and that it does not declare itself (prune 7.1, the superset). */
export const carriedBy = (declared: readonly Claim[], live: readonly HeldClaim[]): HeldClaim[] => {
  const own = new Set(declared.map((claim) => claim.id))
  return live.filter((claim) => !own.has(claim.id))
}

/** The objects of a revision at its beginning: everything stands, with the ids that are known already. */
export const objectsAtStart = (declared: readonly Claim[], live: readonly HeldClaim[]): ClaimObjects => {
  const known = new Map(live.map((claim) => [claim.id, claim.object ?? '']))
  const own = declared.map((claim): [string, string] => [claim.id, known.get(claim.id) ?? ''])
  return Object.fromEntries<string>([...own, ...known])
}

/** With the ids of what was made. What it never claimed is not taken in. */
export const withObjects = (objects: ClaimObjects, made: ReadonlyMap<string, string>): ClaimObjects =>
  Object.fromEntries(Object.entries(objects).map(([id, object]) => [id, made.get(id) ?? object]))

/** Without the claims whose objects are verified gone (prune 7.1: shrink last). */
export const withoutClaims = (objects: ClaimObjects, gone: ReadonlySet<string>): ClaimObjects =>
  Object.fromEntries(Object.entries(objects).filter(([id]) => !gone.has(id)))

/**
 * The compact claims after the oldest revision is folded into them (prune R71): what it says to stand is kept, what it says to have ended goes.
 * Revisions are folded oldest first, each before it is deleted.
 */
export const foldInto = (folded: readonly HeldClaim[], oldest: ClaimSource): HeldClaim[] => {
  const spoken = new Set(everyClaim(oldest).map((claim) => claim.id))
  return [...folded.filter((claim) => !spoken.has(claim.id)), ...standing(oldest)]
}
