/** One process of the soak: plays what it is told, message by message, and answers how it went. */
import { openWorldDatabase } from '../engine/database.ts'
import { failureOf, isSound } from '../engine/failure.ts'
import { playWorld } from '../engine/world.ts'
import { properties } from '../pure/properties.ts'

export type Task = { kind: 'engine'; from: number; count: number } | { kind: 'pure'; property: string; seed: number; count: number }
export interface Played {
  count: number
  /** Null: all held. */
  failure: string | null
}

const database = await openWorldDatabase()

const engineWorlds = async (from: number, count: number): Promise<Played> => {
  for (let seed = from; seed < from + count; seed++) {
    const told = await playWorld(database, seed)
    if (!isSound(told)) return { count: seed - from, failure: failureOf(told) }
  }
  return { count, failure: null }
}

const pureWorlds = (property: string, seed: number, count: number): Played => {
  try {
    properties[property]?.(count, seed)
    return { count, failure: null }
  } catch (error) {
    return { count: 0, failure: `${property}: ${error instanceof Error ? error.message : String(error)}` }
  }
}

process.on('message', (task: Task) => {
  const playing =
    task.kind === 'engine' ? engineWorlds(task.from, task.count) : Promise.resolve(pureWorlds(task.property, task.seed, task.count))
  playing.then(
    (played) => process.send?.(played),
    (error: unknown) => process.send?.({ count: 0, failure: `${JSON.stringify(task)}: ${String(error)}` } satisfies Played),
  )
})
process.on('disconnect', () => process.exit(0))
process.send?.('ready')
