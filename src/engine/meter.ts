/** The part of the metrics that the engine tells of; telemetry is passed in, never imported. */
export interface Meter {
  /** One call to a provider has ended. */
  called(provider: string, operation: string, outcome: string, seconds: number): void
  /** What was given up is proved gone, so long after. */
  reclaimed(provider: string, cause: string, seconds: number): void
}

export const noMeter: Meter = { called() {}, reclaimed() {} }

/** @param outcomeOf what an answer counts as */
export const measured = async <T>(
  tell: (outcome: string, seconds: number) => void,
  outcomeOf: (answer: T) => string,
  work: () => Promise<T>,
): Promise<T> => {
  const began = performance.now()
  let outcome = 'error'
  try {
    const answer = await work()
    outcome = outcomeOf(answer)
    return answer
  } finally {
    tell(outcome, (performance.now() - began) / 1000)
  }
}
