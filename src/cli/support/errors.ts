/** What ends a command: one message for people and an exit code that scripts can rely on. */
export const exitCodes = {
  ok: 0,
  /** Anything without a number of its own; also an audit that found something. */
  failure: 1,
  /** Wrong usage, bad input, refused claim. */
  usage: 2,
  /** Not found, or not yours. */
  notFound: 4,
  waitTimeout: 5,
  removalFailed: 7,
  /** `run`'s own failure, as with env and docker. */
  runFailed: 125,
} as const

export class CliError extends Error {
  readonly exitCode: number
  /** What happened, without what to do about it. */
  readonly what: string
  /** What to do about it; null where the message has it, or there is nothing. */
  readonly remedy: string | null

  constructor(what: string, exitCode: number = exitCodes.failure, remedy: string | null = null) {
    super(remedy === null ? what : `${what}. ${remedy}`)
    this.exitCode = exitCode
    this.what = what
    this.remedy = remedy
  }
}

export const usageError = (message: string): CliError => new CliError(message, exitCodes.usage)

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
