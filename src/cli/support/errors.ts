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

  constructor(message: string, exitCode: number = exitCodes.failure) {
    super(message)
    this.exitCode = exitCode
  }
}

export const usageError = (message: string): CliError => new CliError(message, exitCodes.usage)

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
