import { execFile, spawnSync } from 'node:child_process'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { running, uniqueSleep } from './support.ts'

const root = process.getuid?.() === 0
const script = join(import.meta.dirname, 'unprivileged.ts')
const nobody = 65_534
const asUser = root ? ['setpriv', `--reuid=${nobody}`, `--regid=${nobody}`, '--clear-groups'] : []

/** Why it can't be tried; null when it can: a checkout in root's home is out of an ordinary user's reach. */
const obstacle = (): string | null => {
  if (process.platform !== 'linux') return 'this is not Linux'
  const run = (...command: string[]) => spawnSync([...asUser, ...command][0] as string, [...asUser, ...command].slice(1)).status === 0
  if (!run(process.execPath, '-e', `fs.accessSync(${JSON.stringify(script)}, fs.constants.R_OK)`))
    return 'an ordinary user can not read this checkout'
  if (!run('unshare', '--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'true'))
    return 'an ordinary user can make no user namespace here'
  return null
}
const why = obstacle()

describe('for an ordinary user', () => {
  it.skipIf(why !== null)(`a box is a namespace too, and all of it is taken back${why === null ? '' : ` (${why})`}`, async () => {
    const dataFolder = mkdtempSync(join(tmpdir(), 'leasehold-user-'))
    if (root) chownSync(dataFolder, nobody, nobody)
    const seconds = uniqueSleep()
    const [command, ...args] = [...asUser, process.execPath, script, dataFolder, seconds]
    const { stdout } = await promisify(execFile)(command as string, args, { timeout: 25_000, cwd: '/' })
    rmSync(dataFolder, { recursive: true, force: true })
    const uid = root ? nobody : process.getuid?.()
    expect(JSON.parse(stdout)).toMatchObject({
      uid,
      text: `${uid}\n`,
      code: 7,
      userNamespace: 'true',
      found: { kind: 'complete', found: [{ existence: 'exists' }], contradictions: [] },
      before: 'present',
      removed: 'gone',
      after: 'absent',
      doctor: ['ok', 'ok', 'ok'],
    })
    expect(running('sleep', seconds)).toEqual([])
  })
})
