/**
 * The last line of a run, alone: `12 passed, 0 failed`, with `, 3 skipped` when there are any. It is written when the process
 * ends, after everything else that reports. A file that could not be loaded and an error outside of tests count as
 * failures; a run in which no test ran fails. `LEASEHOLD_TEST_SUMMARY` names a file that gets the same line, for scripts.
 */
import { writeFileSync, writeSync } from 'node:fs'
import type { Reporter, TestModule } from 'vitest/node'

export interface Counts {
  passed: number
  failed: number
  skipped: number
}

export const summary = ({ passed, failed, skipped }: Counts): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`

const count = (modules: readonly TestModule[], errorsOutside: number): Counts => {
  const counts: Counts = { passed: 0, failed: errorsOutside, skipped: 0 }
  for (const module of modules) {
    let own = 0
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed') counts.passed += 1
      else if (state === 'failed') own += 1
      else counts.skipped += 1
    }
    for (const suite of module.children.allSuites()) if (suite.errors().length > 0) own += 1
    if (own === 0 && module.state() === 'failed') own = 1
    counts.failed += own
  }
  return counts
}

/** A pipe that is full answers EAGAIN; the line must come out whole all the same. */
const writeAll = (text: string): void => {
  let rest = Buffer.from(text)
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
    }
  }
}

export default class SummaryReporter implements Reporter {
  #counts: Counts = { passed: 0, failed: 0, skipped: 0 }

  onInit(): void {
    process.once('exit', () => {
      const { passed, failed } = this.#counts
      if (failed > 0 || passed === 0) process.exitCode = Number(process.exitCode) || 1
      const line = `${summary(this.#counts)}\n`
      const file = process.env.LEASEHOLD_TEST_SUMMARY
      if (file !== undefined && file !== '') writeFileSync(file, line)
      writeAll(line)
    })
  }

  onTestRunEnd(modules: readonly TestModule[], errorsOutside: readonly unknown[]): void {
    this.#counts = count(modules, errorsOutside.length)
  }
}
