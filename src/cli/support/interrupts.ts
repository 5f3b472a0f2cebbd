import { constants } from 'node:os'

export const forwardedSignals = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP'] as const
export type ForwardedSignal = (typeof forwardedSignals)[number]

/** The user, or whoever started this program, wants it to end. */
export class Interrupted extends Error {
  readonly signal: NodeJS.Signals

  constructor(signal: NodeJS.Signals) {
    super(`ended by ${signal}`)
    this.signal = signal
  }
}

/** The exit status of what a signal ended: 128 + its number. */
export const signalStatus = (signal: NodeJS.Signals): number => 128 + (constants.signals[signal] ?? 0)

export interface Interrupts {
  /** Replaces what a signal does from here on. `count`: how many came since this was set, the first is 1. */
  handle(handler: (signal: ForwardedSignal, count: number) => void): void
  /** An AbortSignal that the next signal ends, with `Interrupted` as its reason. */
  abortOnNext(): AbortSignal
  /** How many came in all: the phase that a signal is handed to need not be the one that it was sent in. */
  total(): number
  close(): void
}

/** A terminal and a process manager may both deliver one and the same wish within this time. */
const sameWishMs = 200

/** What somebody has to do who sent `signal` and does not want to wait any longer. */
export const onceMore = (signal: NodeJS.Signals): string =>
  signal === 'SIGINT' || signal === 'SIGQUIT' ? 'a second Ctrl-C' : 'a second signal'

/** Long enough for what ends at once to have ended: then there is nothing to say. */
const momentMs = 300

/** Calls `say` in a moment, unless the answered function was called before. */
export const inAMoment = (say: () => void): (() => void) => {
  const timer = setTimeout(say, momentMs)
  timer.unref()
  return () => clearTimeout(timer)
}

/** While this is open, SIGINT, SIGQUIT, SIGTERM and SIGHUP don't end the program; they are handed to the phase that it is in. */
export const catchInterrupts = (): Interrupts => {
  let handler: (signal: ForwardedSignal, count: number) => void = () => {}
  let count = 0
  let total = 0
  let last = Number.NEGATIVE_INFINITY
  const listeners = forwardedSignals.map((signal) => {
    const listener = (): void => {
      const now = performance.now()
      if (now - last < sameWishMs) return
      last = now
      count += 1
      total += 1
      handler(signal, count)
    }
    process.on(signal, listener)
    return [signal, listener] as const
  })
  const handle: Interrupts['handle'] = (next) => {
    handler = next
    count = 0
  }
  return {
    handle,
    abortOnNext: () => {
      const controller = new AbortController()
      handle((signal) => controller.abort(new Interrupted(signal)))
      return controller.signal
    },
    total: () => total,
    close: () => {
      for (const [signal, listener] of listeners) process.off(signal, listener)
    },
  }
}
