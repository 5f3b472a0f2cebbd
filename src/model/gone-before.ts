/** What earlier removals of an attempt took away is explained by them: whoever takes back the rest misses none of it (leases R79, R80). */

export interface EarlierRemoval<M> {
  bound: readonly M[]
  /** Immutable ids of what of it is proved gone; missing: nothing is known of that. */
  progress?: readonly string[]
}

/** What these removals proved gone, each once, in the order in which it went. */
export const goneBefore = <M extends { immutableId: string }>(removals: readonly EarlierRemoval<M>[]): M[] => {
  const gone = new Map<string, M>()
  for (const { bound, progress = [] } of removals)
    for (const id of progress) {
      const member = bound.find((one) => one.immutableId === id)
      if (member !== undefined && !gone.has(id)) gone.set(id, member)
    }
  return [...gone.values()]
}
