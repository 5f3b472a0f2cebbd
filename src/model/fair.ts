/** Who is served when more is due than fits: every project in its turn, so that the load of one starves no other. */
import { compare } from './group.ts'

/** So many projects are served in one fetch: each costs the database a look. */
export const projectsAFetch = 16

/** How many places a project may have while nothing else is due: the rest is for what comes due meanwhile. */
export const shareAlone = (capacity: number): number => Math.max(1, Math.floor(capacity * 0.8))

export interface Share {
  project: string
  /** Rows, at least 1. */
  limit: number
}

/**
 * @param due projects of which something is due
 * @param inWork rows of each project that are being worked on
 * @param free places that are left
 * @param capacity all places: a project that has its part of them waits while others have less
 * @param after the last project that was served; '' at first
 */
export const fairShares = (
  due: readonly string[],
  inWork: ReadonlyMap<string, number>,
  free: number,
  capacity: number,
  after: string,
): Share[] => {
  // Also one that is alone leaves places for whoever comes next.
  const part = due.length === 1 ? shareAlone(capacity) : Math.max(1, Math.floor(capacity / Math.max(1, due.length)))
  const waiting = due.filter((project) => (inWork.get(project) ?? 0) < part).toSorted(compare)
  const turn = [...waiting.filter((project) => project > after), ...waiting.filter((project) => project <= after)]
  const served = turn.slice(0, Math.min(projectsAFetch, free))
  const each = served.length === 0 ? 0 : Math.floor(free / served.length)
  return served.map((project) => ({
    project,
    limit: Math.min(each, part - (inWork.get(project) ?? 0)),
  }))
}
