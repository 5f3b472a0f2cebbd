/** What can go wrong with a call to an Engine. Texts are redacted, and hold nothing that was sent in a body. */
import { redact } from '../redact.ts'

/** The Engine answered, and its answer is no. */
export class EngineError extends Error {
  readonly status: number
  /** The Engine's own words. */
  readonly answer: string

  constructor(call: string, status: number, answer: string) {
    const text = redact(answer)
    super(`${call}: ${text || `status ${status}`}`)
    this.status = status
    this.answer = text
  }
}

/** No answer: it can't be reached, or went away meanwhile. What was asked for may have been done. */
export class EngineUnreachable extends Error {
  /** `Error.code` of what was thrown by Node, where there is one: `ENOENT`, `EACCES`, `ECONNREFUSED`. */
  readonly reason: string | undefined

  constructor(where: string, why: string, reason?: string) {
    super(`the Engine at ${where} gives no answer: ${redact(why)}`)
    this.reason = reason
  }
}

export const isStatus = (error: unknown, ...statuses: number[]): error is EngineError =>
  error instanceof EngineError && statuses.includes(error.status)
