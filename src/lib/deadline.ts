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
  const signal = AbortSignal.any([own.signal, parent])
  const { promise: ended, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => own.abort(new DeadlineError(`${what} gave no answer within ${ms} ms`)), ms)
  const stop = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  try {
    return await Promise.race([call(signal), ended])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
    ended.catch(() => {})
  }
}
