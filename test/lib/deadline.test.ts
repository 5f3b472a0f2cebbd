import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { DeadlineError, withDeadline } from '../../src/lib/deadline.ts'

const never = new AbortController().signal
const hang = <T>(): Promise<T> => new Promise<T>(() => {})

describe('a call with a deadline', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('answers what the call answers, and leaves no timer behind', async () => {
    expect(await withDeadline('reading', 1000, never, async () => 'answer')).toBe('answer')
    expect(vi.getTimerCount()).toBe(0)
  })

  it("passes on the call's own failure, thrown at once or later", async () => {
    await expect(withDeadline('reading', 1000, never, async () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    await expect(
      withDeadline('reading', 1000, never, () => {
        throw new Error('at once')
      }),
    ).rejects.toThrow('at once')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('a call that hangs ends at the deadline, not before, and is told so by its signal', async () => {
    let signal: AbortSignal | undefined
    let ended: unknown
    const call = withDeadline('removing box-1', 30_000, never, (inner) => {
      signal = inner
      return hang()
    }).catch((error: unknown) => {
      ended = error
    })
    await vi.advanceTimersByTimeAsync(29_999)
    expect(ended).toBeUndefined()
    expect(signal?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    await call
    expect(ended).toBeInstanceOf(DeadlineError)
    expect((ended as Error).message).toBe('removing box-1 gave no answer within 30000 ms')
    expect(signal?.aborted).toBe(true)
  })

  it('ends when its parent ends, with the parent’s reason', async () => {
    const parent = new AbortController()
    const call = withDeadline('reading', 30_000, parent.signal, () => hang())
    parent.abort(new Error('the lock on this row was lost'))
    await expect(call).rejects.toThrow('the lock on this row was lost')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is never begun when its parent has ended already (I3)', async () => {
    let called = false
    const call = withDeadline('removing', 30_000, AbortSignal.abort(new Error('lost')), async () => {
      called = true
    })
    await expect(call).rejects.toThrow('lost')
    expect(called).toBe(false)
  })

  it('an answer or a failure that comes after the deadline is nobody’s unhandled rejection', async () => {
    const unhandled: unknown[] = []
    const listen = (reason: unknown): void => void unhandled.push(reason)
    process.on('unhandledRejection', listen)
    try {
      const late = Promise.withResolvers<never>()
      const call = withDeadline('reading', 10, never, () => late.promise)
      const failed = expect(call).rejects.toBeInstanceOf(DeadlineError)
      await vi.advanceTimersByTimeAsync(10)
      await failed
      late.reject(new Error('too late'))
      vi.useRealTimers()
      await new Promise((resolve) => setImmediate(resolve))
      expect(unhandled).toEqual([])
    } finally {
      process.off('unhandledRejection', listen)
    }
  })
})
