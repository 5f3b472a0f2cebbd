/** Which revisions of a release are too many (prune R39, R71): never the current one, and never what may still be under way. */

export interface Numbered {
  number: number
  state: 'intent' | 'committed'
}

/** The newest that was committed; null: none was. */
export const currentOf = <R extends Numbered>(revisions: readonly R[]): R | null =>
  revisions.reduce<R | null>((best, one) => (one.state === 'committed' && one.number > (best?.number ?? 0) ? one : best), null)

export const newestOf = <R extends Numbered>(revisions: readonly R[]): R | null =>
  revisions.reduce<R | null>((best, one) => (one.number > (best?.number ?? 0) ? one : best), null)

/**
 * Oldest first: the order in which they are folded and deleted.
 * @param historyMax how many stay; 0: all
 */
export const tooMany = <R extends Numbered>(revisions: readonly R[], historyMax: number): R[] => {
  const current = currentOf(revisions)
  if (historyMax === 0 || current === null) return []
  const older = revisions.filter((one) => one.number <= current.number).toSorted((a, b) => b.number - a.number)
  return older.slice(Math.max(1, historyMax)).toReversed()
}
