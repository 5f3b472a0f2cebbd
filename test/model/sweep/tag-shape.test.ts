import { describe, expect, it } from 'vitest'
import { judgeCounts } from '../../../src/model/inventory.ts'
import { tagShape, type TagsNow, type TagsThen } from '../../../src/model/tag-shape.ts'
import { plausible } from './build.ts'

const ids = (count: number, prefix = 'i'): string[] => Array.from({ length: count }, (_, n) => `${prefix}-${n}`)
const then = (readable: number, unreadable: string[] = []): TagsThen => ({ readable, unreadable: new Set(unreadable) })
const now = (readable: number, unreadable: string[] = []): TagsNow => ({ readable, unreadable })
const guard = (seen: TagsNow, before: TagsThen | null) => judgeCounts({ ...plausible, ...tagShape(seen, before) }).kind

describe('tags that could be read before (case I2)', () => {
  it('950 of 1,000 that had tags yesterday have none that can be read today: the guard stops the sweep (case I2)', () => {
    expect(tagShape(now(50, ids(950)), then(1000))).toEqual({ hadTags: 1000, unreadable: 950 })
    expect(guard(now(50, ids(950)), then(1000))).toBe('tripped')
  })

  it.each<[string, TagsNow, TagsThen | null, string]>([
    ['exactly a fifth lost them', now(800, ids(200)), then(1000), 'passed'],
    ['one more', now(799, ids(201)), then(1000), 'tripped'],
    ['what never had readable tags has lost none', now(100, ids(60)), then(100, ids(60)), 'passed'],
    ['others beside them have', now(70, [...ids(60), ...ids(30, 'j')]), then(100, ids(60)), 'tripped'],
    ['the first listing of a cell has only itself to compare with', now(7, ids(3)), null, 'tripped'],
    ['and passes when nearly all can be read', now(9, ids(1)), null, 'passed'],
    ['an empty cell that fills up with what can not be read has lost nothing', now(0, ids(4)), then(0), 'passed'],
    ['a cell that shrank is compared with what it shows', now(0, ids(3)), then(1000), 'tripped'],
    ['and one that shrank and is read is plausible', now(3), then(1000), 'passed'],
    ['nothing there, and nothing there before', now(0), then(0), 'passed'],
  ])('%s', (_, seen, before, expected) => {
    expect(guard(seen, before)).toBe(expected)
  })
})
