/**
 * What makes a pipeline look at once rather than at its next tick, and a waiting request answer at once. Only a shortcut: whatever is not heard is found by
 * the tick and by polling.
 */
export const pipelineNames = ['provision', 'expire', 'remove', 'sweep', 'fleet'] as const
export type PipelineName = (typeof pipelineNames)[number]

/** Who passes on what is said here. */
export interface Said {
  wake(pipeline: PipelineName): void
  changed(leaseId: string): void
}

export interface Signals extends Said {
  /** There may be work for this pipeline. */
  wake(pipeline: PipelineName): void
  onWake(pipeline: PipelineName, listener: () => void): () => void
  /** Something about this lease changed. */
  changed(leaseId: string): void
  /** Resolves at the next change of the lease, or after `ms`. */
  nextChange(leaseId: string, ms: number): Promise<void>
  /** What is said in this process, not what is heard from others. */
  onSaid(listener: Said): void
  /** What another process said. */
  hear(news: { wake: readonly PipelineName[]; changed: readonly string[] }): void
  /** This process has forked its database. */
  forked(): void
  onForked(listener: () => void): void
}

export const createSignals = (): Signals => {
  const wakers = new Map<PipelineName, Set<() => void>>()
  const waiters = new Map<string, Set<() => void>>()
  const passing: Said[] = []
  const listenersOf = <K>(map: Map<K, Set<() => void>>, key: K): Set<() => void> => {
    const known = map.get(key) ?? new Set()
    map.set(key, known)
    return known
  }
  const forkListeners: (() => void)[] = []
  const tell = <K>(map: Map<K, Set<() => void>>, key: K): void => {
    for (const listener of map.get(key) ?? []) listener()
  }
  return {
    forked() {
      for (const listener of forkListeners) listener()
    },
    onForked: (listener) => void forkListeners.push(listener),
    wake(pipeline) {
      tell(wakers, pipeline)
      for (const one of passing) one.wake(pipeline)
    },
    onWake(pipeline, listener) {
      const listeners = listenersOf(wakers, pipeline)
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    changed(leaseId) {
      tell(waiters, leaseId)
      for (const one of passing) one.changed(leaseId)
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
    onSaid: (listener) => void passing.push(listener),
    hear({ wake, changed }) {
      for (const pipeline of wake) tell(wakers, pipeline)
      for (const leaseId of changed) tell(waiters, leaseId)
    },
  }
}
