/** The dead-man clock of a box from outside. */
import { runExec } from '../../lib/docker/exec.ts'
import type { Api } from './api.ts'
import type { Box } from './look.ts'
import { rearmScript } from './scripts.ts'

/** The box may live so many seconds from now on. @throws where it does not run, or its clock can't be moved */
export const moveClock = async (api: Api, box: Box, lifetimeSeconds: number, signal: AbortSignal): Promise<void> => {
  if (box.container?.State !== 'running') throw new Error(`the clock of ${box.nativeId} can't be moved: the box does not run`)
  const command = ['/bin/sh', '-c', rearmScript, 'leasehold', String(Math.max(1, Math.ceil(lifetimeSeconds)))]
  const ran = await runExec(api.client, box.container.Id, { command, user: '0:0', folder: '/' }, signal)
  if (ran.status !== 0)
    throw new Error(`the clock of ${box.nativeId} was not moved (status ${ran.status}): ${ran.stderr.trim().slice(0, 300)}`)
}
