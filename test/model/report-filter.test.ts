import { describe, expect, it } from 'vitest'
import { parseLabel, shownBy, type ReportFacts, type ReportFilter, type Shown } from '../../src/model/report-filter.ts'

const facts = (patch: Partial<ReportFacts> = {}): ReportFacts => ({
  owner: 'ann',
  kinds: ['machine', 'disk'],
  labels: [{ team: 'web' }, {}],
  ...patch,
})

describe('a filter of a report', () => {
  it.each<[string, ReportFilter, Partial<ReportFacts>, Shown]>([
    ['nothing asked', {}, { owner: null, kinds: null, labels: null }, []],
    ['its owner', { owner: 'ann' }, {}, []],
    ['another owner', { owner: 'bob' }, {}, null],
    ['no owner known', { owner: 'ann' }, { owner: null }, ['owner']],
    ['one of its kinds', { kind: 'disk' }, {}, []],
    ['another kind', { kind: 'ip' }, {}, null],
    ['no kind known', { kind: 'ip' }, { kinds: null }, ['kind']],
    ['a label of one of its resources', { label: 'team=web' }, {}, []],
    ['another value', { label: 'team=db' }, {}, null],
    ['a key that every object has', { label: 'constructor=x' }, {}, null],
    ['labels that nobody keeps', { label: 'team=web' }, { labels: null }, ['label']],
    ['unreadable labels of one of its resources', { label: 'team=web' }, { labels: [{}, null] }, ['label']],
    ['a label that one shows although another is unreadable', { label: 'team=web' }, { labels: [null, { team: 'web' }] }, []],
    ['two that nobody can answer', { owner: 'ann', label: 'a=b' }, { owner: null, labels: null }, ['owner', 'label']],
    ['one no beside one unknown', { owner: 'bob', label: 'a=b' }, { labels: null }, null],
  ])('%s: what is unknown is shown and marked, what is answered no is not', (_, filter, patch, expected) => {
    expect(shownBy(filter, facts(patch))).toEqual(expected)
  })

  it.each([
    ['a=b', { key: 'a', value: 'b' }],
    ['a=b=c', { key: 'a', value: 'b=c' }],
    ['a=', { key: 'a', value: '' }],
    ['=b', null],
    ['a', null],
    ['', null],
  ])('%j is a label, or none', (text, expected) => {
    expect(parseLabel(text)).toEqual(expected)
  })
})
