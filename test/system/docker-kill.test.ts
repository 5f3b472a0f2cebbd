/** `kill -9` of the coordinator under load, with boxes on a real Engine; see `test/support/kill-play.ts`. */
import { afterEach, expect, inject, it, vi } from 'vitest'
import { byHand } from '../providers/docker/support.ts'
import { killCoordinators } from '../support/coordinator.ts'
import { playKills, type Ground } from '../support/kill-play.ts'
import { dockerEngine, withDocker } from '../support/services/docker-suite.ts'
import { postgresDatabase, sqliteDatabase, type TestDatabase } from '../support/stores.ts'

// An Engine takes its time where others work beside it.
vi.setConfig({ hookTimeout: 180_000 })

const rounds = Number(process.env['LEASEHOLD_KILL_ROUNDS'] ?? (process.env['CI'] === 'true' ? 10 : 3))
const seed = Number(process.env['LEASEHOLD_SEED'] ?? 20261130)
const timeout = 300_000 + rounds * 15_000

const nameOf = (part: string): string => part.replace(/^(leasehold-[a-z0-9]{12}-\d+).*$/, '$1')

withDocker(`kill -9 of the coordinator, ${rounds} times under load, with boxes on an Engine`, () => {
  afterEach(killCoordinators)

  const play = async (database: TestDatabase, postgres: boolean): Promise<void> => {
    const engine = await dockerEngine()
    const hand = byHand(engine)
    const stranger = await hand.stranger({ Labels: { 'com.example': 'x' } })
    const whole = (kind: 'containers/json' | 'networks', installation: string) =>
      hand.call<{ Name?: string; Names?: string[] }[]>(
        'GET',
        `/${kind}?all=1&filters=${encodeURIComponent(JSON.stringify({ label: [`leasehold.installation=${installation}`] }))}`,
      )
    const ground: Ground = {
      backend: { name: 'engine', provider: 'docker', config: { host: engine.host, image: engine.image, graceSeconds: 0 } },
      // Every part by its name, so that half a box shows as one.
      async boxes(_data, installation) {
        const { volumes } = await hand.parts(`leasehold.installation=${installation}`)
        const parts = [...volumes]
        for (const kind of ['containers/json', 'networks'] as const)
          for (const one of await whole(kind, installation)) parts.push(one.Name ?? (one.Names?.[0] ?? '').replace('/', ''))
        return [...new Set(parts.map(nameOf))]
      },
      async check(active, installation) {
        const { containers, networks, volumes } = await hand.parts(`leasehold.installation=${installation}`)
        expect([containers.length, networks.length, volumes.length]).toEqual(Array.from({ length: 3 }, () => active.length))
        for (const id of containers) expect(await hand.exists(id), `container ${id} runs`).toBe(true)
      },
    }
    await playKills({ database, postgres, seed, rounds, ground })
    expect(await hand.exists(stranger)).toBe(true)
    await hand.call('DELETE', `/containers/${stranger}?force=1`)
    hand.close()
  }

  it(`loses and leaves nothing on SQLite (seed ${seed})`, { timeout }, () => play(sqliteDatabase(), false))

  it.skipIf(inject('postgres').url === null && process.env['CI'] !== 'true')(
    `loses and leaves nothing on PostgreSQL (seed ${seed})`,
    { timeout },
    async () => {
      const database = await postgresDatabase(inject('postgres').url as string)
      await play(database, true)
      await database.drop()
    },
  )
})
