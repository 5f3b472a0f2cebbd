/** What a box has besides its image, once it runs: what commands find set, and a volume that their user may write. */
import { randomBytes } from 'node:crypto'
import { runExec } from '../../lib/docker/exec.ts'
import type { Api } from './api.ts'
import { furnishScript } from './scripts.ts'

/** @throws where the box does not take it */
export const furnish = async (
  api: Api,
  container: string,
  what: { env: string; folder: string; user: string },
  signal: AbortSignal,
): Promise<void> => {
  const end = `# end ${randomBytes(8).toString('hex')}`
  const command = ['/bin/sh', '-c', furnishScript, 'leasehold', what.folder, what.user, end]
  const ran = await runExec(api.client, container, { command, user: '0:0', folder: '/', input: `${what.env}${end}\n` }, signal)
  if (ran.status !== 0) throw new Error(`a box could not be furnished (status ${ran.status}): ${ran.stderr.trim().slice(0, 300)}`)
}
