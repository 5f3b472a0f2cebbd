/** What providers answered, and in the same transaction what of it is proved gone by then. */
import type { Tx } from '../store/store.ts'
import { applyAccepted, lockAll, recordOutcome, type Accepted } from './remove-apply.ts'
import { applyGone, type Gone } from './remove-gone.ts'

/** The read after an answer "gone". */
export interface Proof {
  begin(): void
  /** What it shows, if it has come already and shows nothing. */
  come(): Gone | undefined
  /** The same once it has come. Throws as a read does. */
  wait(): Promise<Gone | undefined>
}

export const proofBy = (read: () => Promise<Gone | undefined>): Proof => {
  let gone: Gone | undefined
  let reading: Promise<Gone | undefined> | undefined
  const begin = async (): Promise<Gone | undefined> => (gone = await read())
  return {
    begin() {
      reading ??= begin()
      // Whoever waits hears of it.
      reading.catch(() => {})
    },
    come: () => gone,
    wait: () => reading ?? Promise.resolve(undefined),
  }
}

export interface Answered extends Accepted {
  gone: Gone | undefined
}

/**
 * The answers are written by whatever worker has them (I3), all else only under its fence. Where a provider proves at once what it answered, both share one
 * commit, in the same order of the audit: a crowd of removals has one transaction less to wait for. No answer waits for a proof; one that takes longer is
 * written by itself.
 * @returns of each that was proved gone with its answer, how long ago it was given up, in milliseconds; null: it was not, or not wholly
 */
export const applyAnswers = async (tx: Tx, answers: readonly Answered[]): Promise<(number | null)[]> => {
  await recordOutcome(tx, answers)
  const locks = await lockAll(tx, answers)
  const open = answers.filter((one) => one.gone === undefined)
  await applyAccepted(tx, open, locks)
  const proved = answers.flatMap(({ gone }) => (gone ? [{ ...gone, answeredNow: true as const }] : []))
  const tookMs = (await applyGone(tx, proved, locks)).values()
  return answers.map((one) => (one.gone === undefined ? null : (tookMs.next().value ?? null)))
}
