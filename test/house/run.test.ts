import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decide } from '../support/services/skip.ts'

const root = join(import.meta.dirname, '..', '..')

interface Run {
  code: number
  lines: string[]
  stderr: string
}

/** Runs files of their own with the reporter of this project, in a process of its own. */
const runner = (folder: string) => {
  const file = (name: string, text: string): void => writeFileSync(join(folder, 'test', name), text)
  const run = (env: Record<string, string> = {}, ...args: string[]): Promise<Run> =>
    new Promise((resolve) => {
      const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs')
      const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(CI|VITEST.*|LEASEHOLD_.*)$/.test(name)))
      execFile(process.execPath, [vitest, 'run', ...args], { cwd: folder, env: { ...clean, ...env } }, (error, stdout, stderr) => {
        resolve({ code: error === null ? 0 : Number(error.code), lines: stdout.trimEnd().split('\n'), stderr })
      })
    })
  return { file, run }
}

describe('a run of the tests', { timeout: 120_000 }, () => {
  let folder = ''
  beforeEach(() => {
    mkdirSync(join(root, '.tmp'), { recursive: true })
    folder = mkdtempSync(join(root, '.tmp', 'run-'))
    mkdirSync(join(folder, 'test'))
    const reporter = JSON.stringify(join(root, 'test', 'support', 'reporter.ts'))
    writeFileSync(
      join(folder, 'vitest.config.ts'),
      `export default { test: { include: ['test/**/*.test.ts'], reporters: ['default', ${reporter}], pool: 'forks' } }\n`,
    )
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const suite = (body: string): string => `import { it, expect, describe, beforeAll } from 'vitest'\n${body}\n`
  const services = JSON.stringify(join(root, 'test', 'support', 'services', 'skip.ts'))
  const needing = `import { serviceOr } from ${services}\nserviceOr('Frobnicator', false, 'apt-get install frob')('frobs', () => {})\n`

  it('ends with its counts, alone on the last line', async () => {
    const { file, run } = runner(folder)
    file('a.test.ts', suite(`it('a', () => {}); it('b', () => {}); it.skip('c', () => {})`))
    const first = await run({ LEASEHOLD_TEST_SUMMARY: join(folder, 'summary') })
    expect(first).toMatchObject({ code: 0 })
    expect(first.lines.at(-1)).toBe('2 passed, 0 failed, 1 skipped')
    expect(readFileSync(join(folder, 'summary'), 'utf8')).toBe('2 passed, 0 failed, 1 skipped\n')
    expect((await run({}, '-t', 'b')).lines.at(-1)).toBe('1 passed, 0 failed, 2 skipped')
    file('a.test.ts', suite(`it('a', () => {}); it('b', () => { expect(1).toBe(2) })`))
    const failed = await run()
    expect(failed).toMatchObject({ code: 1 })
    expect(failed.lines.at(-1)).toBe('1 passed, 1 failed')
  })

  it('counts a file that does not load, a failed beforeAll and an error outside of tests as failures', async () => {
    const { file, run } = runner(folder)
    file('a.test.ts', suite(`it('a', () => {})`))
    file('b.test.ts', `import './nowhere.ts'\n`)
    expect((await run()).lines.at(-1)).toBe('1 passed, 1 failed')
    file('b.test.ts', suite(`it('b', async () => { void Promise.reject(new Error('outside')); await new Promise(setImmediate) })`))
    const outside = await run()
    expect(outside).toMatchObject({ code: 1 })
    expect(outside.lines.at(-1)).toBe('2 passed, 1 failed')
    file('b.test.ts', suite(`describe('d', () => { beforeAll(() => { throw new Error('no') }); it('b', () => {}) })`))
    expect(await run()).toMatchObject({ code: 1, lines: expect.arrayContaining([expect.stringMatching(/^1 passed, 1 failed/)]) })
  })

  it('fails when no test ran', async () => {
    const { file, run } = runner(folder)
    expect(await run()).toMatchObject({ code: 1 })
    file('a.test.ts', suite(`it.skip('a', () => {})`))
    const skipped = await run()
    expect(skipped).toMatchObject({ code: 1 })
    expect(skipped.lines.at(-1)).toBe('0 passed, 0 failed, 1 skipped')
  })

  it('skips a suite whose service is missing and names what to install; with CI=true it fails', async () => {
    const { file, run } = runner(folder)
    file('a.test.ts', suite(`it('a', () => {})`))
    file('b.test.ts', needing)
    const skipped = await run()
    expect(skipped).toMatchObject({ code: 0, stderr: expect.stringContaining('SKIPPED frobs: needs Frobnicator: apt-get install frob') })
    expect(skipped.lines.at(-1)).toBe('1 passed, 0 failed, 1 skipped')
    const failed = await run({ CI: 'true' })
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('FAILED frobs') })
    expect(failed.lines.at(-1)).toBe('1 passed, 1 failed')
  })
})

describe('a missing service', () => {
  it.each([
    [true, undefined, 'run'],
    [true, 'true', 'run'],
    [false, undefined, 'skip'],
    [false, 'false', 'skip'],
    [false, '', 'skip'],
    [false, 'true', 'fail'],
    [false, '1', 'fail'],
  ] as const)('available %s with CI=%s: %s', (available, ci, expected) => {
    expect(decide(available, ci)).toBe(expected)
  })
})
