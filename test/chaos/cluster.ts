/** A PostgreSQL of its own and three coordinators on it, each with a network of its own in between. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { executable, freePort, request } from '../support/coordinator.ts'
import { startPostgres, type Postgres } from '../support/services/postgres.ts'
import { unpackBefore, type Before } from './before.ts'
import { startProxy, type Proxy } from '../support/proxy.ts'
import { startReplica, type Replica } from './replica.ts'
import type { Plan } from './schedule.ts'

export interface Cluster {
  postgres: Postgres
  replicas: Replica[]
  proxies: Proxy[]
  data: string
  /** Where each replica writes its log. */
  logs: string
  token(): string
  installation(): Promise<string>
  close(keepLogs: boolean): Promise<void>
}

const sweepEvery = { LEASEHOLD_ORPHAN_CLEANUP_INTERVAL_SECONDS: '10', LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '10' }

/** @param before where the version before is; only asked for if the plan has a replica of it */
export const startCluster = async (plan: Plan, before: Before): Promise<Cluster> => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-chaos-'))
  const [data, logs] = [join(folder, 'data'), join(folder, 'logs')]
  mkdirSync(data)
  mkdirSync(logs)
  const undo: (() => void | Promise<unknown>)[] = []
  const close = async (keepLogs: boolean): Promise<void> => {
    for (const step of undo.splice(0).toReversed()) await step()
    rmSync(keepLogs ? data : folder, { recursive: true, force: true })
  }
  try {
    const postgres = await startPostgres()
    undo.push(() => postgres.stop())
    const older = plan.replicas.some((one) => one.version === 'before') && before.kind === 'found' ? unpackBefore(before) : null
    undo.push(() => older?.remove())
    const environment: Record<string, string> = {
      ...sweepEvery,
      LEASEHOLD_ORPHAN_CLEANUP_MODE: plan.sweeps,
      LEASEHOLD_LIMIT_SHARE_PERCENT: '100',
    }
    const proxies: Proxy[] = []
    const replicas: Replica[] = []
    undo.push(() => Promise.all(replicas.map((one) => one.stop())))
    // The one of the version before comes first: it makes the schema that the others then bring forward while it runs.
    const order = plan.replicas
      .map((_, i) => i)
      .toSorted((a, b) => Number(plan.replicas[b]?.version === 'before') - Number(plan.replicas[a]?.version === 'before'))
    for (const i of order) {
      const one = plan.replicas[i]
      const proxy = await startProxy(postgres.url)
      undo.unshift(() => proxy.close())
      proxies[i] = proxy
      const replica = startReplica({
        name: `replica ${i}`,
        program: one?.version === 'before' && older !== null ? older.program : executable,
        port: await freePort(),
        data,
        databaseUrl: proxy.through(postgres.url),
        clockSkewSeconds: one?.clockSkewSeconds ?? 0,
        environment,
        logFile: join(logs, `replica-${i}.log`),
      })
      replicas[i] = replica
      if (i === order[0]) await replica.ready()
    }
    await Promise.all(replicas.map((one) => one.ready()))
    const token = (): string => readFileSync(join(data, 'admin.token'), 'utf8').trim()
    return {
      postgres,
      replicas,
      proxies,
      data,
      logs,
      token,
      async installation() {
        const { body } = await request<{ status: { installation: string } }>(replicas[0] as Replica, token(), 'GET', '/v1/status')
        return body.status.installation
      },
      close,
    }
  } catch (error) {
    await close(true)
    throw error
  }
}
