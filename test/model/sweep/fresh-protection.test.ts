import { describe, expect, it } from 'vitest'
import { createHash } from 'node:crypto'
import { changedSince, protectedNow, seenThen } from '../../../src/model/fresh-protection.ts'

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

describe('what a sweep found, beside the fresh read (leases R59, case leases 16)', () => {
  const hash = (text: string): string => createHash('sha256').update(text).digest('hex')
  const resource = { location: 'a', kind: 'disk', nativeId: 'd-1' }
  const then = seenThen({ resource, name: 'data', labels: { team: 'x', token: 'canary-secret' }, attachedTo: ['m-1'] }, hash)

  it.each([
    ['other labels', { labels: { team: 'y', token: 'canary-secret' } }, 'labels'],
    ['one label less', { labels: { team: 'x' } }, 'labels'],
    ['labels that can not be read any more', { labels: null }, 'labels'],
    ['another name', { name: 'bobs' }, 'name'],
    ['something else that it is attached to', { attachedTo: ['m-1', 'm-9'] }, 'm-9'],
  ])('%s drops it', (_, found, why) => {
    expect(changedSince(then, found, hash)).toContain(why)
  })

  it.each([
    ['the same in another order', { name: 'data', labels: { token: 'canary-secret', team: 'x' }, attachedTo: ['m-1'] }],
    ['its machine gone', { attachedTo: [] }],
    ['a read that shows none of it', {}],
  ])('%s does not', (_, found) => {
    expect(changedSince(then, found, hash)).toBeNull()
  })

  it('is kept without what people wrote on it', () => {
    expect(JSON.stringify(then)).not.toMatch(/canary|data|team/)
  })
})
