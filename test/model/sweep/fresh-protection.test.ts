import { describe, expect, it } from 'vitest'
import { protectedNow } from '../../../src/model/fresh-protection.ts'

describe('the fresh read before a found removal (leases R58, R68)', () => {
  it.each([
    ['a keep label that was set since', { labels: { keep: 'true' } }, 'label keep=true'],
    ['a keep label without a word that denies it', { labels: { 'team/do-not-delete': 'please' } }, 'label team/do-not-delete=please'],
    ['labels that can not be read', { labels: null }, 'its labels can not be read, and one of them may protect it'],
    ['a mark of the provider', { labels: {}, reportOnly: 'a cascade option' }, 'a cascade option'],
  ])('%s stops it', (_, found, why) => {
    expect(protectedNow(found)).toBe(why)
  })

  it.each([
    ['no labels', { labels: {} }],
    ['a keep label that says no', { labels: { keep: 'false' }, reportOnly: null }],
    ['a read that shows no labels: the listing did', {}],
  ])('%s does not', (_, found) => {
    expect(protectedNow(found)).toBeNull()
  })
})
