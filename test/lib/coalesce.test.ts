import { describe, expect, it } from 'vitest'
import { coalesce } from '../../src/lib/coalesce.ts'
import { gate } from '../support/scripted-provider.ts'
import { until } from '../support/until.ts'

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i)

describe('calls gathered into batches', () => {
  it('each caller gets the answer to its own item', async () => {
    const call = coalesce(async (items: number[]) => items.map((item) => item * 10), { largest: 7 })
    expect(await Promise.all(numbers(50).map(call))).toEqual(numbers(50).map((item) => item * 10))
  })

  it('what is asked in one turn shares a batch, in the order of asking, and no batch is larger than allowed', async () => {
    const batches: number[][] = []
    const call = coalesce(
      async (items: number[]) => {
        batches.push(items)
        return items
      },
      { largest: 4 },
    )
    await Promise.all(numbers(10).map(call))
    expect(batches).toEqual([
      [0, 1, 2, 3],
      [4, 5, 6, 7],
      [8, 9],
    ])
  })

  it('a lone call waits for nobody, and what comes while a batch runs fills the next one', async () => {
    const batches: number[][] = []
    const hold = gate()
    const call = coalesce(
      async (items: number[]) => {
        batches.push(items)
        if (batches.length === 1) await hold.promise
        return items
      },
      { largest: 100 },
    )
    const first = call(1)
    await until(() => batches.length === 1, 'the lone call runs')
    const rest = [2, 3, 4].map(call)
    // A turn goes by, and still nothing else has begun: one batch at a time.
    await new Promise((resolve) => setImmediate(resolve))
    expect(batches).toEqual([[1]])
    hold.open()
    expect(await Promise.all([first, ...rest])).toEqual([1, 2, 3, 4])
    expect(batches).toEqual([[1], [2, 3, 4]])
  })

  it('a bad item fails alone: the others of its batch get their answers', async () => {
    const call = coalesce(
      async (items: number[]) => {
        if (items.includes(3)) throw new Error('three is bad')
        return items.map(String)
      },
      { largest: 10 },
    )
    const settled = await Promise.allSettled([1, 2, 3, 4].map(call))
    expect(settled.map((one) => (one.status === 'fulfilled' ? one.value : (one.reason as Error).message))).toEqual([
      '1',
      '2',
      'three is bad',
      '4',
    ])
  })

  it('a lone bad item is not tried twice', async () => {
    let runs = 0
    const call = coalesce(
      async () => {
        runs++
        throw new Error('no')
      },
      { largest: 10 },
    )
    await expect(call(1)).rejects.toThrow('no')
    expect(runs).toBe(1)
  })

  it.each([1, 2, 3])('at most %i batches run at once', async (concurrent) => {
    let running = 0
    let most = 0
    const hold = gate()
    const call = coalesce(
      async (items: number[]) => {
        running++
        most = Math.max(most, running)
        await hold.promise
        running--
        return items
      },
      { largest: 1, concurrent },
    )
    const all = numbers(12).map(call)
    await until(() => running === concurrent, 'as many run as may')
    hold.open()
    await Promise.all(all)
    expect(most).toBe(concurrent)
  })
})
