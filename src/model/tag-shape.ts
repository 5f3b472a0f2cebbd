/**
 * The guard on tags, from history: what had readable tags at the last plausible listing of a cell, and has none that can be read now (case I2). "Tags
 * unreadable" is not "untagged": a reader that lost its permission, or its way, must not make things look like nobody's.
 */

/** Of one cell. */
export interface TagsNow {
  readable: number
  /** Immutable ids of what has unreadable tags. */
  unreadable: readonly string[]
}
/** Of the same cell, at the last complete listing whose counts were plausible. */
export interface TagsThen {
  readable: number
  unreadable: ReadonlySet<string>
}

/** More are not remembered from one listing to the next: those beyond count as newly unreadable. */
export const mostRemembered = 1000

/** @param then null: this cell was never listed before; then what is there now is all there is to compare with */
export const tagShape = (now: TagsNow, then: TagsThen | null): { hadTags: number; unreadable: number } => {
  if (then === null) return { hadTags: now.readable + now.unreadable.length, unreadable: now.unreadable.length }
  // What never had readable tags has lost none.
  const lost = Math.min(then.readable, now.unreadable.filter((id) => !then.unreadable.has(id)).length)
  return { hadTags: Math.min(then.readable, now.readable + lost), unreadable: lost }
}
