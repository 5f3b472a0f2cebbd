/** A step that its account's rate has no room for: it is put off, fails nothing and counts as no try. */
import { waitText } from '../../model/budget.ts'

export class WaitsForBudget extends Error {
  readonly code = 'waits_for_budget'
  /** The database's time in ms. */
  readonly until: number

  constructor(until: number) {
    super(waitText(until))
    this.until = until
  }
}

/** Where a provider's failure becomes an answer: what only waits is no failure. */
export const passWaits = (error: unknown): void => {
  if (error instanceof WaitsForBudget) throw error
}
