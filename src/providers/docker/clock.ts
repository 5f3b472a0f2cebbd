/** The dead-man clock of a box from outside. */
import { runExec } from '../../lib/docker/exec.ts'
import type { RearmContext } from '../contract.ts'
import type { Api } from './api.ts'
import type { Box } from './look.ts'
import { rearmScript } from './scripts.ts'

/** As the script says it. */
const tooLate = 9

/** The box may live so many seconds from now on. @throws where it does not run, or its clock can't be moved */
export const moveClock = async (api: Api, box: Box, lifetimeSeconds: number, { signal, stands, order }: RearmContext): Promise<void> => {
  if (box.container?.State !== 'running') throw new Error(`the clock of ${box.nativeId} can't be moved: the box does not run`)
  const command = ['/bin/sh', '-c', rearmScript, 'leasehold', String(Math.max(1, Math.ceil(lifetimeSeconds))), String(order)]
  if (!stands()) throw new Error(`the clock of ${box.nativeId} was not moved: whoever asked may have lost it meanwhile`)
  const ran = await runExec(api.client, box.container.Id, { command, user: '0:0', folder: '/' }, signal)
  if (ran.status === tooLate) throw new Error(`the clock of ${box.nativeId} was not moved: it was set for a later holder`)
  if (ran.status !== 0)
    throw new Error(`the clock of ${box.nativeId} was not moved (status ${ran.status}): ${ran.stderr.trim().slice(0, 300)}`)
}
