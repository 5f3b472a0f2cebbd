/** What somebody reads whose command can't be started in a box, in both modes. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { spawnInBox } from '../../../src/providers/process/enter.ts'
import { context } from '../../conformance/request.ts'
import { type Boxes, initAlive, initOf, openBoxes, until } from './support.ts'

const possible = spawnSync('unshare', ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'true']).status === 0

describe.each(possible ? ['namespace', 'session'] : ['session'])('entering a box (%s)', (mode) => {
  let boxes: Boxes
  beforeEach(() => {
    boxes = openBoxes({ mode })
  })
  afterEach(() => boxes.dispose())

  it('says in one line of its own what is not there or not executable, and nothing of its scripts', async () => {
    const { resource } = await boxes.make()
    const [plain, folder] = [join(boxes.dataFolder, 'plain'), join(boxes.dataFolder, 'folder')]
    writeFileSync(plain, 'text')
    mkdirSync(folder)
    const says = async (name: string, path?: string) => {
      const { code, errors } = await boxes.output(resource, [name], path === undefined ? undefined : { PATH: path })
      return [code, errors]
    }
    expect(await says('nonexistent')).toEqual([127, 'leasehold: nonexistent: not found\n'])
    expect(await says('/no/such\\n')).toEqual([127, 'leasehold: /no/such\\n: not found\n'])
    expect(await says('')).toEqual([127, "leasehold: '': not found\n"])
    expect(await says(plain)).toEqual([126, `leasehold: ${plain}: not executable\n`])
    expect(await says(folder)).toEqual([126, `leasehold: ${folder}: not executable\n`])
    expect(await says('plain', `${boxes.dataFolder}:${process.env['PATH']}`)).toEqual([126, 'leasehold: plain: not executable\n'])
    chmodSync(plain, 0o755)
    expect(await says('plain', `/nowhere:${boxes.dataFolder}:${process.env['PATH']}`)).not.toEqual([126, expect.anything()])
  })

  it("leaves every variable of the caller's to the command", async () => {
    const { resource } = await boxes.make()
    const names = ['folder', 'line', 'program', 'verdict', 'rest', 'entry', 'mode']
    const given = Object.fromEntries(names.map((name) => [name, `my ${name}`]))
    const { text } = await boxes.output(resource, ['env'], given)
    for (const name of names) expect(text).toContain(`${name}=my ${name}\n`)
    expect(text).not.toContain('_lh_')
  })

  it('warns when a box can no longer be entered, and not before (leases R25)', async () => {
    const { resource, folder } = await boxes.make()
    const warning = async () => (await boxes.provider.refreshAccess?.(resource, {}, context()))?.warning
    expect(await warning()).toBeNull()
    process.kill(initOf(folder).pid, 'SIGKILL')
    await until('it is dead', () => !initAlive(folder))
    expect(await warning()).toContain('does not run any more')
  })

  it.skipIf(mode === 'session')('says of a box whose first process is gone that it is', async () => {
    const { resource, folder } = await boxes.make()
    const access = boxes.provider.access(resource, boxes.config)
    process.kill(initOf(folder).pid, 'SIGKILL')
    await until('it is dead', () => !initAlive(folder))
    await until('its pid is free', () => {
      try {
        spawnInBox(access, ['true'], { stdio: 'ignore' })
        return false
      } catch (error) {
        return (error as Error).message === 'its first process is gone'
      }
    })
  })
})
