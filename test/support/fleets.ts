/** Fleets on started engines, for suites that play with them. */
import { createFleet, listFleets, type FleetInput } from '../../src/engine/admin/index.ts'
import type { Engine } from '../../src/engine/engine.ts'
import type { FleetView } from '../../src/model/wire.ts'
import type { InstanceRow } from '../../src/store/instances.ts'
import type { Store } from '../../src/store/store.ts'
import { root } from './engine.ts'
import { until } from './until.ts'

export const instancesOf = (store: Store): Promise<InstanceRow[]> =>
  store.read(({ db }) => db.selectFrom('instances').selectAll().orderBy('created_at').orderBy('id').execute())

export const fleetNamed = async (engine: Engine, name = 'ci'): Promise<FleetView | undefined> =>
  (await listFleets(engine.context, root)).find((one) => one.name === name)

/** Polls the fleet until `is` says so. */
export const fleetWhen = (engine: Engine, what: string, is: (fleet: FleetView) => boolean, name = 'ci'): Promise<FleetView> =>
  until(async () => {
    const fleet = await fleetNamed(engine, name)
    return fleet && is(fleet) ? fleet : undefined
  }, what)

/** Makes a fleet and waits until it is ready. */
export const fleetOf = async (engine: Engine, size: number, over: Partial<FleetInput> = {}): Promise<FleetView> => {
  await createFleet(engine.context, root, { name: 'ci', size, ...over })
  return fleetWhen(engine, `${size} boxes are ready`, (fleet) => fleet.ready === size, over.name)
}

export const eventsOf = async (store: Store, code: string): Promise<Record<string, unknown>[]> =>
  (await store.read(({ db }) => db.selectFrom('events').select('payload').where('code', '=', code).execute())).map(
    (row) => JSON.parse(row.payload) as Record<string, unknown>,
  )
