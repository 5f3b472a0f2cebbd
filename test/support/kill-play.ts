/**
 * The coordinator is killed at random moments under load and started again. At the end nothing is lost, nothing is left over, and nobody's lease has ended
 * early (cases leases 5, D1). What stands at the provider is looked at without the coordinator, by the ground that the boxes stand on.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { LeaseView } from '../../src/model/wire.ts'
import { hex } from '../../src/lib/ids.ts'
import { freePort, request, startCoordinator, type Coordinator } from './coordinator.ts'
import type { TestDatabase } from './stores.ts'
import { until } from './until.ts'

const clients = 4

export interface Ground {
  /** The backend that leases are made in; missing: the default one. */
  backend?: { name: string; provider: string; config: Record<string, unknown> }
  /** Names of all boxes of this installation that stand, whole or in part. */
  boxes(data: string, installation: string): string[] | Promise<string[]>
  /** What else must hold while exactly these leases are active. */
  check?(active: readonly LeaseView[], installation: string): void | Promise<void>
}

export interface Play {
  database: TestDatabase
  postgres: boolean
  seed: number
  rounds: number
  ground: Ground
}

interface Held {
  id: string
  key: string
  /** What the client was told last. */
  told: 'asked' | 'active' | 'release-asked' | 'released' | 'cancelled'
}

/** One client of the coordinator: creates with a key that it repeats, beats, releases; a broken connection tells it nothing. */
const client = async (
  target: () => Coordinator,
  token: string,
  stopped: () => boolean,
  leases: Held[],
  random: () => number,
  backend: string | undefined,
): Promise<void> => {
  const call = async (method: string, path: string, body?: unknown) => {
    for (;;) {
      try {
        return await request(target(), token, method, path, body)
      } catch {
        if (stopped()) return null
        await sleep(20)
      }
    }
  }
  while (!stopped()) {
    const mine: Held = { id: `lh_${hex(6)}`, key: `cat_${hex(16)}`, told: 'asked' }
    leases.push(mine)
    const body = {
      leaseID: mine.id,
      createAttemptID: mine.key,
      ttlSeconds: 3600,
      idleTimeoutSeconds: 600,
      ...(backend === undefined ? {} : { backend }),
    }
    if (random() < 0.15) {
      // Cancelled while it is being made: the create's own answer is not waited for.
      void request(target(), token, 'POST', '/v1/leases', body).catch(() => {})
      const cancelled = await call('POST', `/v1/leases/${mine.id}/cancel-create`, { createAttemptID: mine.key })
      if (cancelled?.status === 200) mine.told = 'cancelled'
      continue
    }
    const made = await call('POST', '/v1/leases', body)
    if (made === null) return
    if (made.status === 201 || made.status === 200) mine.told = 'active'
    else if (made.status !== 202) continue
    for (let beats = Math.floor(random() * 4); beats > 0 && !stopped(); beats--) {
      const beat = await call('POST', `/v1/leases/${mine.id}/heartbeat`, {})
      if (beat !== null && mine.told === 'active') expect(beat.status, JSON.stringify(beat.body)).toBe(200)
    }
    if (random() < 0.7) {
      mine.told = 'release-asked'
      const released = await call('POST', `/v1/leases/${mine.id}/release`, { delete: true })
      if (released?.status === 200 && mine.told === 'release-asked') mine.told = 'released'
    }
  }
}

/** Plays it, and proves that nothing is lost or left. */
export const playKills = async ({ database, postgres, seed, rounds, ground }: Play): Promise<void> => {
  const data = mkdtempSync(join(tmpdir(), 'leasehold-kill-'))
  const port = await freePort()
  const start = (): Promise<Coordinator> => startCoordinator({ data, port, ...(postgres ? { databaseUrl: database.target } : { env: {} }) })
  let state = seed
  const random = (): number => {
    state = (state * 1664525 + 1013904223) % 2 ** 32
    return state / 2 ** 32
  }
  let coordinator = await start()
  const token = coordinator.token()
  if (ground.backend) expect((await request(coordinator, token, 'POST', '/v1/backends', ground.backend)).status).toBe(201)
  const leases: Held[] = []
  let stopping = false
  const working = Array.from({ length: clients }, () =>
    client(
      () => coordinator,
      token,
      () => stopping,
      leases,
      random,
      ground.backend?.name,
    ),
  )
  for (let round = 0; round < rounds; round++) {
    await sleep(50 + random() * 900)
    await coordinator.kill()
    coordinator = await start()
  }
  stopping = true
  await Promise.all(working)

  const list = async (): Promise<LeaseView[]> =>
    Promise.all(
      leases.map(async (held) => (await request<{ lease: LeaseView }>(coordinator, token, 'GET', `/v1/leases/${held.id}`)).body.lease),
    )
  const settled = await until(
    async () => {
      const views = (await list()).filter((view) => view !== undefined)
      const moving = views.filter((view) => view.state === 'provisioning' || (view.state !== 'active' && view.cleanup.state !== 'gone'))
      return moving.length === 0 ? views : undefined
    },
    'every lease is settled',
    120_000,
  )
  const byId = new Map(settled.map((view) => [view.id, view]))
  for (const held of leases) {
    const view = byId.get(held.id)
    if (held.told === 'active')
      expect(view, `${held.id} was answered active, then: ${JSON.stringify(view)}`).toMatchObject({ state: 'active' })
    if (held.told === 'released') expect(view, held.id).toMatchObject({ state: 'released' })
    if (held.told === 'cancelled') expect(['released', undefined], held.id).toContain(view?.state)
  }
  const active = settled.filter((view) => view.state === 'active')
  const { body } = await request(coordinator, token, 'GET', '/v1/status')
  const installation = (body as { status: { installation: string } }).status.installation
  expect((await ground.boxes(data, installation)).toSorted()).toEqual(active.map((view) => view.cloudID ?? '').toSorted())
  await ground.check?.(active, installation)
  expect(leases.length).toBeGreaterThan(rounds / 2)

  for (const view of active) await request(coordinator, token, 'POST', `/v1/leases/${view.id}/release`, { delete: true })
  await until(async () => (await ground.boxes(data, installation)).length === 0, 'nothing is left', 60_000)
  await ground.check?.([], installation)
  expect(await coordinator.stop()).toBe(0)
  rmSync(data, { recursive: true, force: true })
}
