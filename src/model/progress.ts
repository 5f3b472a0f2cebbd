/** The ordered progress of a removal: immutable ids that are proved gone. It only grows (leases R79, R81). */

export type Merged = { kind: 'merged'; progress: string[] } | { kind: 'diverged'; why: string }

/**
 * leases R81: the longer of the two where one begins with the other; never shorter than what is stored. Two that differ before the end of the shorter tell of
 * two different removals, and nothing is written then.
 */
export const mergeProgress = (stored: readonly string[], mine: readonly string[]): Merged => {
  const shorter = Math.min(stored.length, mine.length)
  for (let i = 0; i < shorter; i++)
    if (stored[i] !== mine[i]) return { kind: 'diverged', why: `the stored progress has ${stored[i]} where this worker's has ${mine[i]}` }
  return { kind: 'merged', progress: [...(mine.length > stored.length ? mine : stored)] }
}
