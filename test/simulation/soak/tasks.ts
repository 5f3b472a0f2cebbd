/** What a soak plays, cut into parts for processes that share it. */
import type { Task } from './player.ts'

export interface Amounts {
  engine: number
  pure: number
  /** The first seed; each run has its own unless it is told. */
  seed: number
}

const engineAtOnce = 100
const pureAtOnce = 50_000

/** Engine worlds and pure ones by turns, so that a fault of either shows early. */
export const tasksOf = ({ engine, pure, seed }: Amounts, properties: readonly string[]): Task[] => {
  const engines: Task[] = []
  for (let done = 0; done < engine; done += engineAtOnce)
    engines.push({ kind: 'engine', from: seed + done, count: Math.min(engineAtOnce, engine - done) })
  const pures: Task[] = []
  for (let done = 0; done < pure;) {
    const property = properties[pures.length % properties.length] as string
    const count = Math.min(pureAtOnce, pure - done)
    pures.push({ kind: 'pure', property, seed: seed + pures.length, count })
    done += count
  }
  const tasks: Task[] = []
  const ratio = pures.length === 0 ? 0 : engines.length / pures.length
  let taken = 0
  for (const [i, one] of pures.entries()) {
    tasks.push(one)
    while (taken < Math.min(engines.length, Math.floor((i + 1) * ratio))) tasks.push(engines[taken++] as Task)
  }
  return [...tasks, ...engines.slice(taken)]
}
