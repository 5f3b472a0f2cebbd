/**
 * In-process news: what makes a pipeline look at once rather than at its next tick, and a waiting request answer at once.
 * Only a shortcut: another replica's changes are found by the tick and by polling.
 */
export type PipelineName = 'provision' | 'expire' | 'remove' | 'sweep'

export interface Signals {
  /** There may be work for this pipeline. */
  wake(pipeline: PipelineName): void
  onWake(pipeline: PipelineName, listener: () => void): () => void
  /** Something about this lease changed. */
  changed(leaseId: string): void
  /** Resolves at the next change of the lease, or after `ms`. */
  nextChange(leaseId: string, ms: number): Promise<void>
  /** This process has forked its database. */
  forked(): void
  onForked(listener: () => void): void
}

export const createSignals = (): Signals => {
  const wakers = new Map<PipelineName, Set<() => void>>()
  const waiters = new Map<string, Set<() => void>>()
  const listenersOf = <K>(map: Map<K, Set<() => void>>, key: K): Set<() => void> => {
    const known = map.get(key) ?? new Set()
    map.set(key, known)
    return known
  }
  const forkListeners: (() => void)[] = []
  return {
    forked: () => {
      for (const listener of forkListeners) listener()
    },
    onForked: (listener) => void forkListeners.push(listener),
    wake: (pipeline) => {
      for (const listener of wakers.get(pipeline) ?? []) listener()
    },
    onWake: (pipeline, listener) => {
      const listeners = listenersOf(wakers, pipeline)
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    changed: (leaseId) => {
      for (const listener of waiters.get(leaseId) ?? []) listener()
    },
    nextChange: (leaseId, ms) =>
      new Promise((resolve) => {
        const listeners = listenersOf(waiters, leaseId)
        const done = (): void => {
          clearTimeout(timer)
          listeners.delete(done)
          if (listeners.size === 0) waiters.delete(leaseId)
          resolve()
        }
        const timer = setTimeout(done, ms)
        listeners.add(done)
      }),
  }
}
