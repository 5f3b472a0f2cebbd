/**
 * Once per run: an Engine for whoever asks (`docker-on-demand.ts`), and one PostgreSQL for every suite that wants it. `LEASEHOLD_TEST_POSTGRES_URL` names one that is there already
 * (14 or newer, and a role that may create databases); then none is started. Suites take it with `inject('postgres')` and
 * `serviceOr`.
 */
import type { TestProject } from 'vitest/node'
import { type DockerService, offerDocker } from './docker-on-demand.ts'
import { postgresPrograms, startPostgres } from './postgres.ts'

export interface PostgresService {
  /** null: there is none, and `problem` says why. */
  url: string | null
  problem: string | null
}

declare module 'vitest' {
  interface ProvidedContext {
    postgres: PostgresService
    docker: DockerService
  }
}

const variable = 'LEASEHOLD_TEST_POSTGRES_URL'

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const docker = await offerDocker()
  project.provide('docker', docker.service)
  const stopPostgres = await setupPostgres(project)
  return async () => {
    await docker.stop()
    await stopPostgres?.()
  }
}

const setupPostgres = async ({ provide }: TestProject): Promise<(() => Promise<void>) | undefined> => {
  const given = process.env[variable]
  if (given !== undefined && given !== '') {
    provide('postgres', { url: given, problem: null })
    return undefined
  }
  if (postgresPrograms() === null) {
    provide('postgres', { url: null, problem: 'initdb and postgres are neither in PATH nor in /usr/lib/postgresql' })
    return undefined
  }
  const server = await startPostgres()
  provide('postgres', { url: server.url, problem: null })
  process.env[variable] = server.url
  return async () => {
    delete process.env[variable]
    await server.stop()
  }
}
