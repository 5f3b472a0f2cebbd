/** The run's Engine, for the suites that need one. */
import { connect } from 'node:net'
import { inject } from 'vitest'
import type { DockerEngine } from './docker.ts'
import { serviceOr } from './skip.ts'

let own: Promise<DockerEngine> | null = null

const ask = async (socket: string): Promise<DockerEngine> => {
  let text = ''
  for await (const chunk of connect(socket) as AsyncIterable<Buffer>) text += chunk.toString()
  const answer = JSON.parse(text) as DockerEngine & { error?: string }
  if (answer.error !== undefined) throw new Error(answer.error)
  return answer
}

/** The run's Engine. @throws where it does not start */
export const dockerEngine = (): Promise<DockerEngine> => {
  const { socket, problem } = inject('docker')
  if (socket === null) throw new Error(problem ?? 'there is no Engine')
  return (own ??= ask(socket))
}

/** `describe` where an Engine can be had, else a suite of one test that skips or fails and says why. */
export const withDocker = (title: string, body: () => void): void => {
  const { socket, problem } = inject('docker')
  serviceOr('a Docker Engine', socket !== null, `apt-get install docker.io, and be root (${problem ?? 'it is there'})`)(title, body)
}
