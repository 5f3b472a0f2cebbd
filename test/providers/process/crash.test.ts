import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { processStat } from '../../../src/lib/host.ts'
import type { Ref } from '../../../src/model/ids.ts'
import { context } from '../../conformance/request.ts'
import { carriesRef, openBoxes, pids, until } from './support.ts'

const modes = ['namespace', 'session'].filter(
  (mode) =>
    mode === 'session' ||
    spawnSync('unshare', ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'true']).status === 0,
)

describe.skipIf(process.platform !== 'linux')('a coordinator that is killed at any moment', () => {
  it.each(modes)('leaves nothing that is not found by its ref and taken back: boxes as %ss', { timeout: 60_000 }, async (mode) => {
    const boxes = openBoxes({ mode, graceSeconds: 0 })
    let unfinished = 0
    for (let round = 0; round < 8; round += 1) {
      const maker = spawn(process.execPath, [join(import.meta.dirname, 'maker.ts'), boxes.dataFolder, mode], {
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      let text = ''
      maker.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()))
      await until('it makes boxes', () => text.split('\n').length > 4)
      await pause(round * 13)
      maker.kill('SIGKILL')
      await once(maker, 'close')
      const refs = text.split('\n').filter(Boolean) as Ref[]
      for (const ref of refs) {
        // At once: what was just starting may come up while it is looked for.
        const found = await until('the look is complete', async () => {
          const outcome = await boxes.provider.find(ref, boxes.config, context())
          return outcome.kind === 'complete' ? outcome : null
        })
        expect(found.contradictions).toEqual([])
        expect(found.found.length).toBeLessThanOrEqual(1)
        for (const { resource } of found.found) {
          unfinished += 1
          await until('it is gone', async () => (await boxes.provider.remove(resource, boxes.config, context())).kind === 'gone')
        }
      }
      expect(boxes.folders()).toEqual([])
      expect(pids().filter((pid) => processStat(pid)?.alive && refs.some((ref) => carriesRef(pid, ref)))).toEqual([])
    }
    // The twin: the kills did hit the middle of something.
    expect(unfinished).toBeGreaterThan(0)
    await boxes.dispose()
  })
})
