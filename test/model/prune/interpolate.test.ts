import { describe, expect, it } from 'vitest'
import { interpolate, substitute } from '../../../src/model/prune/interpolate.ts'
import { mergeValues } from '../../../src/model/prune/values.ts'
import { parsed } from '../../support/releases.ts'

const values = new Map([
  ['SET', 'x'],
  ['EMPTY', ''],
  ['N', '3'],
  ['DOLLAR', '${SET}'],
])
const result = (text: string): string => {
  const done = substitute(text, values)
  return done.ok ? done.text : `! ${done.message}`
}

describe('variables in Compose files', () => {
  it.each([
    ['$SET-', '! "$SET" is followed by what some versions of Compose take for a default'],
    ['a $SET b', 'a x b'],
    ['${SET}y', 'xy'],
    ['${SET:-d}', 'x'],
    ['${EMPTY:-d}', 'd'],
    ['${EMPTY-d}', ''],
    ['${NONE-d}', 'd'],
    ['${NONE:-}', ''],
    ['${NONE:-a b}', 'a b'],
    ['${SET:?e}', 'x'],
    ['${EMPTY?e}', ''],
    ['${EMPTY:?say it}', '! the variable EMPTY is required: say it'],
    ['${NONE?}', '! the variable NONE is required: it has no value'],
    ['$$SET $${SET}', '$SET ${SET}'],
    ['$$$SET', '$x'],
    ['${DOLLAR}', '${SET}'],
    ['${NONE}', '! the variable NONE has no value'],
    ['$NONE', '! the variable NONE has no value'],
    ['$', '! a "$" stands alone'],
    ['$5', '! a "$" stands alone'],
    ['${', '! a "${" is not followed by a variable and "}"'],
    ['${a b}', '! a "${" is not followed by a variable and "}"'],
    ['${NONE:-${SET}}', '! the default of NONE has a variable in it, which docker stack deploy does not read'],
  ])('%s becomes %s (decisions rule 10)', (text, expected) => expect(result(text)).toBe(expected))

  it('come from the values files alone: nothing of the environment shows', () => {
    process.env['LEASEHOLD_TEST_VALUE'] = 'from the environment'
    try {
      expect(result('${LEASEHOLD_TEST_VALUE:-no}')).toBe('no')
    } finally {
      delete process.env['LEASEHOLD_TEST_VALUE']
    }
  })

  it('become numbers and truth values where Compose wants those, and only if a variable was there', () => {
    const file = {
      services: { web: { tty: '${T:-yes}', deploy: { replicas: '$N' }, image: '$N', ports: [{ target: '${N}' }], user: '3' } },
    }
    expect(interpolate(file, values).value).toEqual({
      services: { web: { tty: true, deploy: { replicas: 3 }, image: '3', ports: [{ target: 3 }], user: '3' } },
    })
    expect(interpolate({ services: { web: { deploy: { replicas: '${SET}' } } } }, values).problems).toHaveLength(1)
  })

  it('leaves keys alone', () => expect(interpolate({ $SET: 1 }, values).value).toEqual({ $SET: 1 }))
})

describe('values files', () => {
  const merged = (...texts: string[]) => mergeValues(texts.map((text, at) => parsed(text, `${at}.yml`)))

  it('are flat, and a later one wins', () => {
    const done = merged('A: 1\nB: two\nC: true\n', '', 'B: "3"\n')
    expect(done.ok && Object.fromEntries(done.values)).toEqual({ A: '1', B: '3', C: 'true' })
  })

  it.each(['A: {b: c}', 'A: [1]', 'A:', '1A: x', 'a-b: x', '- a', 'text'])('refuse %s', (text) => expect(merged(text).ok).toBe(false))
})
