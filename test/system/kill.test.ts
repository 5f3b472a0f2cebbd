/**
 * The coordinator is killed at random moments under load and started again, on both databases. At the end nothing is lost, nothing is left
 * over, and nobody's lease has ended early (cases leases 5, D1).
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, inject, it } from 'vitest'
import type { LeaseView } from '../../src/model/wire.ts'
import { hex } from '../../src/lib/ids.ts'
import { boxFolders, processesWith } from '../support/boxes.ts'
import { freePort, killCoordinators, request, startCoordinator, type Coordinator } from '../support/coordinator.ts'
import { serviceOr } from '../support/services/skip.ts'
import { postgresDatabase, sqliteDatabase, type TestDatabase } from '../support/stores.ts'
import { until } from '../support/until.ts'

const rounds = Number(process.env['LEASEHOLD_KILL_ROUNDS'] ?? (process.env['CI'] === 'true' ? 50 : 8))
const clients = 4

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
    const body = { leaseID: mine.id, createAttemptID: mine.key, ttlSeconds: 3600, idleTimeoutSeconds: 600 }
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

const play = async (database: TestDatabase, postgres: boolean, seed: number): Promise<void> => {
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
  const leases: Held[] = []
  let stopping = false
  const working = Array.from({ length: clients }, () =>
    client(
      () => coordinator,
      token,
      () => stopping,
      leases,
      random,
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
  expect(boxFolders(data)).toEqual(active.map((view) => view.cloudID ?? '').toSorted())
  const { body } = await request(coordinator, token, 'GET', '/v1/status')
  const installation = (body as { status: { installation: string } }).status.installation
  const refs = new Set(active.map((view) => view.ref))
  for (const ref of refs) expect(processesWith('LEASEHOLD_REF', ref).length, `the box of ${ref} lives`).toBeGreaterThan(0)
  const tagged = new Set(processesWith('LEASEHOLD_INSTALLATION', installation))
  const expected = new Set([...refs].flatMap((ref) => processesWith('LEASEHOLD_REF', ref)))
  expect(tagged).toEqual(expected)
  expect(leases.length).toBeGreaterThan(rounds / 2)

  for (const view of active) await request(coordinator, token, 'POST', `/v1/leases/${view.id}/release`, { delete: true })
  await until(
    () => boxFolders(data).length === 0 && processesWith('LEASEHOLD_INSTALLATION', installation).length === 0,
    'nothing is left',
    60_000,
  )
  expect(await coordinator.stop()).toBe(0)
  rmSync(data, { recursive: true, force: true })
}

describe(`kill -9 of the coordinator, ${rounds} times under load`, () => {
  afterEach(killCoordinators)
  const timeout = 120_000 + rounds * 8_000
  const seed = Number(process.env['LEASEHOLD_SEED'] ?? 20261130)
  it(`loses and leaves nothing on SQLite (seed ${seed})`, { timeout }, () => play(sqliteDatabase(), false, seed))
})
const { url } = inject('postgres')
serviceOr(
  'PostgreSQL',
  url !== null,
  'apt-get install postgresql',
)(`kill -9 of the coordinator, ${rounds} times under load`, () => {
  afterEach(killCoordinators)
  const timeout = 120_000 + rounds * 8_000
  const seed = Number(process.env['LEASEHOLD_SEED'] ?? 20261130)
  it(`loses and leaves nothing on PostgreSQL (seed ${seed})`, { timeout }, async () => {
    const database = await postgresDatabase(url as string)
    await play(database, true, seed)
    await database.drop()
  })
})
