/**
 * Suites that need a real service of the machine. Where it is missing they are skipped, loudly and with what to install; with
 * `CI=true`, where everything is supposed to be installed, they fail instead.
 */
import { describe, it } from 'vitest'

export type Suite = (title: string, body: () => void) => void
export type Decision = 'run' | 'skip' | 'fail'

/** `CI` unset, empty, `0` or `false`: a person's machine. */
export const decide = (available: boolean, ci: string | undefined): Decision => {
  if (available) return 'run'
  return ci === undefined || ['', '0', 'false'].includes(ci) ? 'skip' : 'fail'
}

/**
 * `describe` where the service is there, else a suite of one test that skips or fails and says why.
 * @example serviceOr('PostgreSQL', inject('postgres').url !== null, 'apt-get install postgresql')('the store', () => {…})
 */
export const serviceOr = (name: string, available: boolean, install: string): Suite => {
  const decision = decide(available, process.env.CI)
  if (decision === 'run') return (title, body) => void describe(title, body)
  const sentence = `needs ${name}: ${install}`
  return (title) => {
    process.stderr.write(`${decision === 'skip' ? 'SKIPPED' : 'FAILED'} ${title}: ${sentence}\n`)
    describe(title, () => {
      if (decision === 'skip') it.skip(sentence, () => {})
      else
        it(sentence, () => {
          throw new Error(`${title} ${sentence}`)
        })
    })
  }
}
