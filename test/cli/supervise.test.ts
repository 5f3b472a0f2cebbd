/** What `run` does beside a command in a real box, where the door into its namespace is a process of its own. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { catchInterrupts } from '../../src/cli/support/interrupts.ts'
import { superviseCommand, type Ended } from '../../src/cli/support/supervise.ts'
import { processStat } from '../../src/lib/host.ts'
import * as door from '../../src/providers/process/enter.ts'
import { openBoxes, until, type Boxes } from '../providers/process/support.ts'

const possible = spawnSync('unshare', ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'true']).status === 0

describe.skipIf(!possible)('a command in a namespace', () => {
  let boxes: Boxes
  beforeEach(() => {
    boxes = openBoxes({ mode: 'namespace' })
  })
  afterEach(() => boxes.dispose())

  const start = async (script: string): Promise<{ doorPid: number; command: () => number; ended: Promise<Ended> }> => {
    const { resource } = await boxes.make()
    const child = boxes.run(resource, ['sh', '-c', script])
    const doorPid = child.pid as number
    const interrupts = catchInterrupts()
    onTestFinished(() => interrupts.close())
    const ended = superviseCommand(child, boxes.provider.access(resource, boxes.config), door, interrupts, () => {})
    const children = () => readFileSync(`/proc/${doorPid}/task/${doorPid}/children`, 'utf8').trim()
    const pid = Number(await until('the command runs', children))
    return { doorPid, command: () => pid, ended }
  }
  const state = (pid: number): string | undefined => processStat(pid)?.state

  it('ends with its status although its door was left stopped, as by Ctrl-Z and fg', async () => {
    const { doorPid, ended } = await start('sleep 0.7; exit 7')
    process.kill(doorPid, 'SIGSTOP')
    await until('the door stands', () => state(doorPid) === 'T')
    expect(await ended).toEqual({ status: 7, unasked: true })
  })

  it('stays stopped while somebody wants it so, and goes on when it is told to', async () => {
    const { doorPid, command, ended } = await start('while :; do sleep 0.05; done')
    process.kill(command(), 'SIGSTOP')
    await until('both stand', () => state(command()) === 'T' && state(doorPid) === 'T')
    // Several looks of the supervisor later: a look that moved it on would have been seen in between.
    const end = performance.now() + 1_000
    await until('a second has passed', () => {
      expect(state(command())).toBe('T')
      return performance.now() > end
    })
    process.kill(command(), 'SIGCONT')
    await until('the door goes on', () => state(doorPid) !== 'T')
    process.kill(command(), 'SIGTERM')
    expect(await ended).toEqual({ status: 143, unasked: true })
  })
})
