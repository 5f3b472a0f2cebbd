/** Files and folders that change under a program: the current folder goes, another replica writes `serve.url`. */
import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { cleanEnvironment, executable, freePort, killCoordinators, startCoordinator } from '../support/coordinator.ts'

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'leasehold-folder-'))
})
afterEach(async () => {
  await killCoordinators()
  rmSync(data, { recursive: true, force: true })
})

describe('in a folder that was deleted', () => {
  const inDeleted = (...words: string[]): Promise<{ status: number; err: string }> =>
    new Promise((resolve) => {
      const script = 'mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"'
      const argv = ['-c', script, 'sh', join(data, 'gone'), executable, ...words]
      execFile('sh', argv, { env: cleanEnvironment({ LEASEHOLD_DATA: data }) }, (error, _out, err) =>
        resolve({ status: typeof error?.code === 'number' ? error.code : 0, err }),
      )
    })

  it.each([
    [['run', '--', 'true'], 125],
    [['list'], 1],
    [['stop', 'x'], 1],
  ] as const)('%j says so, is exit %i, and shows no stack', async (words, exit) => {
    const { status, err } = await inDeleted(...words)
    expect(status).toBe(exit)
    expect(err).toContain('leasehold: the current folder is not there any more: change to another one\n')
    expect(err).not.toMatch(/^ +at |uv_cwd/m)
  })

  it('help is still given', async () => {
    expect((await inDeleted('run', '--help')).status).toBe(0)
  })
})

describe('serve.url', () => {
  it("goes with the coordinator that wrote it; another replica's stays", async () => {
    const file = join(data, 'serve.url')
    const first = await startCoordinator({ data, port: await freePort() })
    expect(readFileSync(file, 'utf8')).toBe(`${first.url}\n`)
    await first.stop()
    expect(existsSync(file)).toBe(false)
    const second = await startCoordinator({ data, port: await freePort() })
    writeFileSync(file, 'http://127.0.0.1:1\n')
    await second.stop()
    expect(readFileSync(file, 'utf8')).toBe('http://127.0.0.1:1\n')
  })
})
