/** Calls that can't hang: the caller goes on at the deadline, whatever the callee does. */

export class DeadlineError extends Error {
  readonly code = 'deadline_exceeded'
}

/**
 * @param ms the deadline
 * @param parent ends the call earlier
 * @param call gets a signal that ends at the deadline or with `parent`; it is not made when `parent` has ended already
 * @throws DeadlineError, or the parent's reason
 */
export const withDeadline = async <T>(
  what: string,
  ms: number,
  parent: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> => {
  parent.throwIfAborted()
  const own = new AbortController()
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const end = (reason: Error): void => {
    own.abort(reason)
    reject(reason)
  }
  const timer = setTimeout(() => end(new DeadlineError(`${what} gave no answer within ${ms} ms`)), ms)
  // Not `AbortSignal.any`, which cost a removal more than all else that it does in memory.
  const stop = (): void => end(parent.reason as Error)
  parent.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([call(own.signal), ended])
  } finally {
    clearTimeout(timer)
    parent.removeEventListener('abort', stop)
    ended.catch(() => {})
  }
}
