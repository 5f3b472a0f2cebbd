/** One Engine for a whole run, started by the first file that asks for it: most runs need none. The files ask over a socket, because each is a process of its own. */
import { mkdtempSync, rmSync } from 'node:fs'
import { type Server, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RunningEngine, dockerProblem, startDocker } from './docker.ts'

export interface DockerService {
  /** Where to ask; null: there can be none, and `problem` says why. */
  socket: string | null
  problem: string | null
}

/** In the process of the run. */
export const offerDocker = async (): Promise<{ service: DockerService; stop: () => Promise<void> }> => {
  const problem = dockerProblem()
  if (problem !== null) return { service: { socket: null, problem }, stop: async () => {} }
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-engine-'))
  const socket = join(folder, 'ask')
  let engine: Promise<RunningEngine> | null = null
  const server: Server = createServer((asking) => {
    asking.on('error', () => {})
    engine ??= startDocker()
    engine.then(
      (facts) => asking.end(JSON.stringify(facts)),
      (error: unknown) => asking.end(JSON.stringify({ error: String(error) })),
    )
  })
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  server.unref()
  return {
    service: { socket, problem: null },
    stop: async () => {
      server.close()
      await engine?.then(
        (running) => running.stop(),
        () => {},
      )
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
