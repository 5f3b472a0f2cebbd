/**
 * Time and chance of a generated world. While it is installed, timers fire when the world says so and not before, ids are drawn from the seed, and the wall
 * clock tells a time that nobody should work by (I4). What is waited for without a timer (microtasks, immediates) goes on by itself: `drain` waits until
 * nothing of it is left, and then nothing happens until the time moves.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import timersPromises from 'node:timers/promises'
import { chanceOf } from './random.ts'

interface Timer {
  due: number
  every: number | null
  run: () => void
}

const realImmediate = globalThis.setImmediate
/** The wall clock is wrong by so much. */
const wallIsAheadMs = 500 * 86_400_000

export interface Universe {
  /** ms since the world began. */
  now(): number
  /** Until nothing goes on without the time. */
  drain(): Promise<void>
  /** Moves the time, and then fires what has come due meanwhile, until all that can happen at that time has happened. */
  leap(ms: number): Promise<void>
  /** Afterwards everything is as it was before, and what still waited never fires. */
  close(): void
}

/**
 * @param moved told of each new time before anything fires
 * @param monotonic `stands`: whoever goes by the clock of the process never notices that time has passed
 */
export const openUniverse = (
  seed: number,
  startAt: number,
  moved: (now: number) => void,
  monotonic: 'runs' | 'stands' = 'runs',
): Universe => {
  const ids = chanceOf(seed ^ 0x1d5)
  const timers = new Map<number, Timer>()
  let serial = 0
  let now = 0
  let immediates = 0
  let open = true

  const start = (run: () => void, ms: number, every: boolean): object => {
    const id = ++serial
    const wait = Math.max(1, Math.floor(ms) || 1)
    if (open) timers.set(id, { due: now + wait, every: every ? wait : null, run })
    const handle = { unref: () => handle, ref: () => handle, [Symbol.toPrimitive]: () => id }
    return handle
  }
  const stop = (handle: unknown): void => {
    if (typeof handle === 'object' && handle !== null) timers.delete(Number(handle))
  }
  const immediate = (run: (...args: unknown[]) => void, ...args: unknown[]): NodeJS.Immediate => {
    immediates++
    return realImmediate(() => {
      immediates--
      run(...args)
    })
  }

  const before = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    setImmediate: globalThis.setImmediate,
  }
  const dateNow = Date.now
  const performanceNow = Reflect.get(performance, 'now') as () => number
  const mathRandom = Math.random
  const { randomBytes, randomInt } = crypto
  const promised = timersPromises.setImmediate

  Object.assign(globalThis, {
    setTimeout: (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => start(() => run(...args), ms, false),
    setInterval: (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => start(() => run(...args), ms, true),
    clearTimeout: stop,
    clearInterval: stop,
    setImmediate: immediate,
  })
  Date.now = () => startAt + now + wallIsAheadMs
  performance.now = () => 1_000 + (monotonic === 'runs' ? now : 0)
  Math.random = ids.next
  Object.assign(crypto, {
    randomBytes: (size: number) => Buffer.from(Array.from({ length: size }, () => ids.pick(256))),
    randomInt: (options: number) => ids.pick(options),
  })
  Object.assign(timersPromises, { setImmediate: (value?: unknown) => new Promise((resolve) => immediate(() => resolve(value))) })
  syncBuiltinESMExports()

  const drain = async (): Promise<void> => {
    do await new Promise((resolve) => realImmediate(resolve))
    while (immediates > 0)
  }
  const fireDue = (): boolean => {
    const due = [...timers].filter(([, timer]) => timer.due <= now)
    if (due.length === 0) return false
    due.sort(([a, one], [b, two]) => one.due - two.due || a - b)
    for (const [id, timer] of due) {
      // Cleared by one that fired before it.
      if (!timers.has(id)) continue
      if (timer.every === null) timers.delete(id)
      else timer.due = now + timer.every
      timer.run()
    }
    return true
  }
  return {
    now: () => now,
    drain,
    async leap(ms) {
      now += ms
      moved(now)
      while (fireDue()) await drain()
    },
    close() {
      open = false
      timers.clear()
      Object.assign(globalThis, before)
      Date.now = dateNow
      performance.now = performanceNow
      Math.random = mathRandom
      Object.assign(crypto, { randomBytes, randomInt })
      Object.assign(timersPromises, { setImmediate: promised })
      syncBuiltinESMExports()
    },
  }
}
