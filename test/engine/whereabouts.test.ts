/** Where a database lives, as a coordinator sees it at its start and while it runs; the drill itself is in `restore.test.ts`. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { adoptInstallation, readInstallationView } from '../../src/engine/admin/index.ts'
import { silentLog } from '../../src/engine/context.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { installationOf } from '../../src/engine/installation.ts'
import { createWhereabouts } from '../../src/engine/whereabouts.ts'
import { listStops } from '../../src/store/stops.ts'
import { makeEngine, root } from '../support/engine.ts'
import { copyFileOf } from '../support/copies.ts'
import { sqliteDatabase } from '../support/databases.ts'
import { scriptedProvider } from '../support/scripted-provider.ts'
import { eachStore } from '../support/stores.ts'

eachStore('the epoch', (open) => {
  it('is counted up at each start, and several that start at once each get one', async () => {
    const store = await open()
    const { installation_id: id } = await installationOf(store)
    const starts = [1, 2, 3].map(() => createWhereabouts(store, id, silentLog, false))
    await Promise.all(starts.map((one) => one.start()))
    const { epoch, place } = await installationOf(store)
    expect(epoch).toBe(3)
    expect(place).not.toBeNull()
  })

  it('where the database lived before is forgotten by nobody who only looks: another place stops all removals while it runs, too', async () => {
    const store = await open()
    const { installation_id: id } = await installationOf(store)
    const one = createWhereabouts(store, id, silentLog, false)
    await one.start()
    await one.look()
    expect(await store.read(listStops)).toEqual([])
    const { place } = await installationOf(store)
    const then = JSON.parse(place ?? '{}') as Record<string, unknown>
    const moved = JSON.stringify(then['kind'] === 'file' ? { ...then, inode: '1' } : { ...then, timeline: Number(then['timeline']) - 1 })
    await store.write((tx) => tx.db.updateTable('installation').set({ place: moved }).execute())
    await one.look()
    expect(await store.read(listStops)).toMatchObject([{ scope: '*', code: 'elsewhere' }])
    expect((await installationOf(store)).place).toBe(moved)
    // Back where it was, nobody has said yet which one is the true one.
    await store.write((tx) => tx.db.updateTable('installation').set({ place }).execute())
    await one.look()
    expect(await store.read(listStops)).toHaveLength(1)
  })
})

describe('a backup that is written over the file in place', () => {
  const running: Engine[] = []
  afterEach(async () => {
    await Promise.all(running.splice(0).map((engine) => engine.stop(0)))
  })
  const startOn = async (database: ReturnType<typeof sqliteDatabase>) => {
    const store = await database.open()
    const engine = await makeEngine(store, scriptedProvider())
    await engine.start()
    running.push(engine)
    return {
      engine,
      async end() {
        running.splice(running.indexOf(engine), 1)
        await engine.stop(0)
        await store.close()
      },
    }
  }
  const stops = async ({ engine }: { engine: Engine }) => (await readInstallationView(engine.context, root)).stops

  it('keeps the file’s identity, and is told by the number beside it (decisions 6)', async () => {
    const database = sqliteDatabase()
    await (await startOn(database)).end()
    const backup = copyFileOf(database.target)
    await (await startOn(database)).end()
    copyFileSync(backup.target, database.target)
    const restored = await startOn(database)
    expect(await stops(restored)).toMatchObject([
      { code: 'elsewhere', why: expect.stringMatching(/a backup was written over it/) as string },
    ])
    await adoptInstallation(restored.engine.context, root, { reason: 'restored after a mistake', original: 'stopped' })
    await restored.end()
    const again = await startOn(database)
    expect(await stops(again)).toEqual([])
    await again.end()
    await backup.drop()
    await database.drop()
  })

  it('the twin: the newest state of the file, put back, is no older one; nor is one without a number beside it, or with nonsense there', async () => {
    const database = sqliteDatabase()
    await (await startOn(database)).end()
    const backup = copyFileOf(database.target)
    copyFileSync(backup.target, database.target)
    for (const text of [null, '', '{', '{"mark":"x"}']) {
      if (text !== null) writeFileSync(`${database.target}.mark`, text)
      const one = await startOn(database)
      expect(await stops(one)).toEqual([])
      await one.end()
      expect(JSON.parse(readFileSync(`${database.target}.mark`, 'utf8'))).toMatchObject({ mark: expect.any(Number) as number })
    }
    await backup.drop()
    await database.drop()
  })
})
