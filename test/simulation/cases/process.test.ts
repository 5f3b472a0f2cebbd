/**
 * The judged situations on real processes of this machine, in delete mode: what carries no ref of ours, an unknown one, another installation's id or the
 * copied ref of a live box is not touched, and the copy is reported.
 */
import { afterEach, describe, expect, it } from 'vitest'
import { requestSweep } from '../../../src/engine/admin/index.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { installationOf } from '../../../src/engine/installation.ts'
import { processStat } from '../../../src/lib/host.ts'
import type { LeaseView, SweepView } from '../../../src/model/wire.ts'
import { createProcessProvider } from '../../../src/providers/process/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { argumentsOf, initAlive, openBoxes, uniqueSleep, type Boxes } from '../../providers/process/support.ts'
import { leaseOn, makeEngine, root } from '../../support/engine.ts'
import { advance, eachStore, setClock } from '../../support/stores.ts'
import { sweepsAs } from '../../support/sweep-settings.ts'
import { until } from '../../support/until.ts'
import { deregister, graceSeconds, long } from './support.ts'

interface World {
  store: Store
  engine: Engine
  boxes: Boxes
  sweep(seconds?: number): Promise<SweepView>
  box(): Promise<{ lease: LeaseView; folder: string; environment: Record<string, string> }>
  outside(environment: Record<string, string>): Promise<number>
  told(): Promise<string[]>
}

const alive = (pid: number): boolean => processStat(pid)?.alive === true

describe.skipIf(process.platform !== 'linux')('real processes', () => {
  eachStore('in delete mode', (open) => {
    const undo: (() => Promise<unknown>)[] = []
    afterEach(async () => {
      for (const step of undo.splice(0).toReversed()) await step()
    })

    const world = async (store: Store, boxes: Boxes): Promise<World> => {
      // Processes bear the real time, so the database's clock begins there.
      await setClock(store, Date.now())
      const installation = (await installationOf(store)).installation_id
      const sweeps = sweepsAs({ mode: 'delete', graceMs: graceSeconds * 1000 })
      const engine = await makeEngine(store, createProcessProvider({ dataFolder: boxes.dataFolder, installation }), { sweeps })
      undo.push(() => engine.stop(0))
      await engine.start()
      return {
        store,
        engine,
        boxes,
        async sweep(seconds = 60) {
          await advance(store, seconds * 1000)
          const [view] = await requestSweep(engine.context, root, {}, 20_000, new AbortController().signal)
          return view as SweepView
        },
        async box() {
          const lease = await leaseOn(engine, long)
          const { token } = await store.read(({ db }) =>
            db
              .selectFrom('attempts')
              .select('token')
              .where('ref', '=', lease.ref as never)
              .executeTakeFirstOrThrow(),
          )
          const environment = { LEASEHOLD_REF: lease.ref, LEASEHOLD_INSTALLATION: installation, LEASEHOLD_ATTEMPT: token }
          return { lease, folder: `${boxes.dataFolder}/boxes/${lease.cloudID}`, environment }
        },
        async outside(environment) {
          const pid = boxes.outside(['sleep', uniqueSleep()], environment).pid as number
          await until(() => argumentsOf(pid)[0] === 'sleep', 'it runs')
          return pid
        },
        told: () =>
          store.read(async ({ db }) => {
            const rows = await db.selectFrom('findings').select(['code', 'target_id']).where('state', '=', 'open').execute()
            return rows.map((row) => `${row.code} ${row.target_id.split('/').at(-1)}`).toSorted()
          }),
      }
    }
    const fresh = async (): Promise<World> => {
      const boxes = openBoxes({ graceSeconds: 0 })
      undo.push(() => boxes.dispose())
      return world(await open(), boxes)
    }
    const sweepOut = async (one: World): Promise<void> => {
      await one.sweep()
      await one.sweep(graceSeconds + 60)
      await one.sweep()
    }

    it('processes without our ref, with an unknown one, or with another installation’s id are left alone (case B1, orphan 7)', async () => {
      const one = await fresh()
      const live = await one.box()
      const pids = [
        await one.outside({ SOMETHING: 'else' }),
        await one.outside({ LEASEHOLD_REF: 'r00000000001' }),
        await one.outside({ ...live.environment, LEASEHOLD_REF: 'r00000000002' }),
        await one.outside({ ...live.environment, LEASEHOLD_INSTALLATION: 'zzzzzzzz' }),
        await one.outside({ LEASEHOLD_REF: 'r00000000003', LEASEHOLD_INSTALLATION: 'zzzzzzzz' }),
        await one.outside({ LEASEHOLD_REF: 'not a ref' }),
      ]
      await sweepOut(one)
      expect(pids.filter(alive)).toEqual(pids)
      expect(initAlive(live.folder)).toBe(true)
      expect(await one.told()).toEqual([])
    })

    it('a process with the copied tags of a live box is reported and left alone, and so is the box (case B1)', async () => {
      const one = await fresh()
      const live = await one.box()
      const copy = await one.outside(live.environment)
      await sweepOut(one)
      expect(await one.told()).toEqual([`contradiction pid:${copy}`])
      expect([alive(copy), initAlive(live.folder)]).toEqual([true, true])
      // Over when it is over.
      process.kill(copy, 'SIGKILL')
      await until(() => !alive(copy), 'the copy has ended')
      await one.sweep()
      expect(await one.told()).toEqual([])
    })

    it('the twin: a box whose owner has ended is taken back, beside a live one and a copy of its own tags that both stay', async () => {
      const one = await fresh()
      const live = await one.box()
      const ended = await one.box()
      const copy = await one.outside(ended.environment)
      await deregister(one.store, ended.lease)
      await one.sweep()
      expect(await one.told()).toEqual([`contradiction pid:${copy}`, `orphan ${ended.lease.cloudID}`])
      expect(initAlive(ended.folder)).toBe(true)
      await one.sweep(graceSeconds + 60)
      await until(() => one.boxes.folders().join() === live.lease.cloudID, 'its folder is gone, and no other')
      expect([alive(copy), initAlive(live.folder)]).toEqual([true, true])
    })

    it('boxes of another installation in the same folder are foreign, and not touched (case B1)', async () => {
      const one = await fresh()
      const other = await world(await open(), one.boxes)
      const mine = await one.box()
      const theirs = await other.box()
      await deregister(one.store, mine.lease)
      const view = await one.sweep()
      expect(view.verdicts).toMatchObject({ 'foreign.other-installation': 1, 'orphan.owner-ended': 1 })
      await one.sweep(graceSeconds + 60)
      await until(() => !one.boxes.folders().includes(mine.lease.cloudID ?? ''), 'ours is gone')
      await sweepOut(one)
      expect(initAlive(theirs.folder)).toBe(true)
      expect(await one.told()).toEqual([])
      // The twin: to its own installation it is an orphan once its owner has ended.
      await deregister(other.store, theirs.lease)
      await other.sweep()
      await other.sweep(graceSeconds + 60)
      await until(() => other.boxes.folders().length === 0, 'theirs is gone too')
    })
  })
})
