/**
 * The chaos suite: three coordinators as real processes on one PostgreSQL, under load, while they are killed, stand still for longer than their locks, are cut
 * off from the database without a word, run in two versions and by a wrong clock, and while the database itself is restarted. Then all of it stops, and
 * what is on record must say that each lease ended exactly once and not early, that nothing is left, and that no event is missing or there twice.
 *
 * - A **plan** follows from the seed (`schedule.ts`); what the operating system makes of it does not, so a failing seed may have to be played several times.
 * - A **history** is what is on record at the end (`history.ts`); `judge.ts` decides.
 *
 * Not in here: a provider that lies. That is what `test/simulation` plays, far more often than real processes could.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditVerificationView } from '../../src/model/wire-audit.ts'
import type { RemovalView } from '../../src/model/wire-removals.ts'
import { openCloud } from '../../src/providers/simulated/cloud.ts'
import { defaultPath } from '../../src/providers/simulated/config.ts'
import { chanceOf } from '../simulation/engine/random.ts'
import { executable, request } from '../support/coordinator.ts'
import { until } from '../support/until.ts'
import type { Before } from './before.ts'
import { createCaller } from './client.ts'
import { startCluster, type Cluster } from './cluster.ts'
import { countMoving, readLeft, readRows } from './collect.ts'
import { follow } from './follow.ts'
import type { History } from './history.ts'
import { judge } from './judge.ts'
import { holders, type Load } from './load.ts'
import { describeFault, describePlan, type Fault, type Plan } from './schedule.ts'
import type { Replica } from './replica.ts'

export interface PlayOptions {
  before: Before
  /** Concurrent holders. */
  clients?: number
  /** Goes on until so many leases were made, however long the faults last (case M11). */
  leases?: number
  pauseMs?: number
  /** How long everything may take to stand still afterwards. */
  settleMs?: number
  say?: (line: string) => void
}

export interface Played {
  problems: string[]
  leases: number
  seconds: number
  /** Where the replicas' logs and the history are; only kept where something does not hold. */
  logs: string
}

/** On a machine that is busy a start takes long; who never gets to serve proves nothing. */
const onceItServes = async (replica: Replica | undefined): Promise<Replica> => {
  if (replica === undefined) throw new Error('there is no such replica')
  await until(() => replica.serves(), `${replica.name} serves`, 180_000)
  return replica
}

const strike = async (cluster: Cluster, fault: Fault): Promise<void> => {
  if (fault.kind === 'restart-database') return cluster.postgres.restart(fault.how)
  const replica = await onceItServes(cluster.replicas[fault.replica])
  switch (fault.kind) {
    case 'kill':
      await replica.kill()
      if (fault.againMs === null) return
      await sleep(fault.againMs)
      return replica.kill()
    case 'upgrade':
      return replica.become(executable)
    case 'stand-still':
      replica.halt()
      await sleep(fault.forMs)
      return replica.go()
    case 'half-open':
      cluster.proxies[fault.replica]?.halfOpen()
      await sleep(fault.forMs)
      return cluster.proxies[fault.replica]?.reset()
  }
}

/** Each replica's faults come one after the other; those of the database beside them. */
const strikeAll = async (cluster: Cluster, plan: Plan, say: (line: string) => void, unexpected: string[]): Promise<void> => {
  const startedAt = performance.now()
  const lanes = Map.groupBy(plan.faults, (fault) => (fault.kind === 'restart-database' ? 'database' : fault.replica))
  await Promise.all(
    [...lanes.values()].map(async (faults) => {
      let late = 0
      for (const fault of faults) {
        await sleep(Math.max(0, fault.atMs + late - (performance.now() - startedAt)))
        say(describeFault(fault))
        const struckAt = performance.now()
        await strike(cluster, fault).catch((error: unknown) => unexpected.push(`${describeFault(fault)}: ${(error as Error).message}`))
        const meant = fault.kind === 'stand-still' || fault.kind === 'half-open' ? fault.forMs : 0
        late += Math.max(0, performance.now() - struckAt - meant)
      }
    }),
  )
}

const verifyAudit = async (cluster: Cluster): Promise<string[]> => {
  const end = performance.now() + 30_000
  for (;;) {
    const { body } = await request<{ verification: AuditVerificationView }>(
      cluster.replicas[0] as Replica,
      cluster.token(),
      'GET',
      '/v1/admin/audit/verify?limit=1000000',
    )
    const { ok, problem, unsealed, complete } = body.verification
    if (ok && complete && unsealed.count === 0) return []
    if (performance.now() > end) return [problem?.message ?? `${unsealed.count} records are not sealed, complete: ${complete}`]
    await sleep(500)
  }
}

/**
 * Who died between a provider's answer and its record, in a group of several, leaves a member that nothing explains: by design that waits for a person (leases
 * R80, R91), who here is sure of it.
 */
const answerForAbsences = async (cluster: Cluster): Promise<void> => {
  const [replica, token] = [cluster.replicas[0] as Replica, cluster.token()]
  const { body } = await request<{ removals?: RemovalView[] }>(replica, token, 'GET', '/v1/removals?limit=500')
  for (const { id, fingerprint, missing } of body.removals ?? [])
    if (missing.length > 0)
      await request(replica, token, 'POST', `/v1/removals/${id}/acknowledge-absence`, { fingerprint, reason: 'its call was cut off' })
}

const settle = async (cluster: Cluster, deadlineMs: number): Promise<void> => {
  const end = performance.now() + deadlineMs
  for (let looks = 1; (await countMoving(cluster.postgres.url)) !== null && performance.now() < end; looks++) {
    if (looks % 20 === 0) await answerForAbsences(cluster)
    await sleep(250)
  }
}

/** Made here, so that its time is right whichever replica is the first to come. */
const addCloud = async (cluster: Cluster): Promise<void> => {
  openCloud(defaultPath(cluster.data)).close()
  const body = { name: 'cloud', project: 'default', provider: 'simulated', config: { createDeadlineSeconds: 10 } }
  const answer = await request(cluster.replicas[0] as Replica, cluster.token(), 'POST', '/v1/backends', body)
  if (answer.status !== 201) throw new Error(`the simulated backend was not made: ${JSON.stringify(answer.body)}`)
}

const playOn = async (cluster: Cluster, plan: Plan, options: PlayOptions): Promise<History> => {
  const { say = () => {} } = options
  const installation = await cluster.installation()
  if (plan.backends.includes('cloud')) await addCloud(cluster)
  const unexpected: string[] = []
  const told: History['told'] = []
  const followed: History['followed'] = []
  let [over, settled] = [false, false]
  const callers = (seed: number, ended: () => boolean) =>
    createCaller({
      urls: cluster.replicas.map((one) => one.url),
      token: cluster.token(),
      chance: chanceOf(seed),
      over: ended,
      passedOver: (status, what, body) => {
        if (status === 500) unexpected.push(`${what} was answered 500 ${JSON.stringify(body).slice(0, 300)}`)
      },
    })
  const startedAt = performance.now()
  const done = (): boolean => over && told.length >= (options.leases ?? 0)
  const loads = Array.from({ length: options.clients ?? 8 }, (_, i): Load => {
    const backends = plan.backends.map((one) => (one === 'boxes' ? 'local' : one))
    const seed = plan.seed * 1000 + i
    return { caller: callers(seed, done), chance: chanceOf(-seed), done, told, unexpected, backends, pauseMs: options.pauseMs ?? 1_500 }
  })
  const wrong = (error: unknown): void => void unexpected.push((error as Error).message)
  const following = follow(
    callers(-1, () => false),
    followed,
    () => settled,
  ).catch(wrong)
  const working = loads.map((load) => holders(load).catch(wrong))
  const telling = setInterval(
    () =>
      say(
        `  ${((performance.now() - startedAt) / 1000).toFixed(0)} s: ${told.length} leases asked for, ${told.filter((one) => one.active).length} were active`,
      ),
    5_000,
  )
  await Promise.all([strikeAll(cluster, plan, say, unexpected), sleep(plan.loadMs)])
  over = true
  clearInterval(telling)
  await Promise.all(working)
  say(`load ends, ${told.length} leases`)
  await Promise.all(cluster.replicas.map((one) => one.ready())).catch(wrong)
  await settle(cluster, options.settleMs ?? 180_000)
  say((await countMoving(cluster.postgres.url)) ?? 'everything stands still')
  const rows = await until(async () => {
    const read = await readRows(cluster.postgres.url)
    // The follower's next look numbers what was written since its last one.
    return read.events.every((event) => event.seq !== null) ? read : undefined
  }, 'every event has its number').catch(() => readRows(cluster.postgres.url))
  settled = true
  await following
  return {
    told,
    unexpected,
    ...rows,
    // What came after the rows were read is in no row.
    followed: followed.slice(0, rows.events.length),
    audit: await verifyAudit(cluster),
    ...(await readLeft(cluster.postgres.url, cluster.data, installation)),
    ends: cluster.replicas.flatMap((one) => one.unasked()),
  }
}

export const play = async (plan: Plan, options: PlayOptions): Promise<Played> => {
  const startedAt = performance.now()
  options.say?.(describePlan(plan))
  const cluster = await startCluster(plan, options.before)
  let problems = ['it did not come to its end']
  try {
    const history = await playOn(cluster, plan, options)
    problems = judge(history)
    if (problems.length > 0) writeFileSync(join(cluster.logs, 'history.json'), JSON.stringify(history, null, 2))
    return { problems, leases: history.leases.length, seconds: (performance.now() - startedAt) / 1000, logs: cluster.logs }
  } finally {
    await cluster.close(problems.length > 0)
  }
}
