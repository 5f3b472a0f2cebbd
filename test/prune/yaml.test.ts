import { describe, expect, it } from 'vitest'
import { faultsOf, parsed } from '../support/releases.ts'

describe('YAML of applications', () => {
  it('is read as Docker reads it: octal numbers, merged mappings, base-60 and dates as texts', () => {
    const text = 'base: &b {mode: 0440, keep: 1}\none: {<<: *b, keep: 2}\nport: 22:30\nday: 2001-01-01\ndot: .\n'
    expect(parsed(text).value).toEqual({
      base: { mode: 0o440, keep: 1 },
      one: { mode: 0o440, keep: 2 },
      port: '22:30',
      day: '2001-01-01',
      dot: '.',
    })
  })

  it('refuses a key that is there twice, with its line and column (prune 2.2)', () => {
    expect(faultsOf('a: 1\nb:\n  c: 1\n  c: 2\n')).toEqual(['4:3: this key is there twice. Keep one of them'])
  })

  it('refuses what programs read differently, and what a number does not keep', () => {
    expect(faultsOf('a: yes\nb: 1e6\nc: 12345678901234567890\n1: x\n__proto__: y\n').map((one) => one.split('. ')[0])).toEqual([
      '1:4: "yes" is a truth value to some readers of YAML and a word to others',
      "2:4: 1e6 is a number that can't be kept exactly",
      "3:4: 12345678901234567890 is a number that can't be kept exactly",
      '4:1: the key 1 is no text',
      '5:1: the key __proto__ is not taken',
    ])
  })

  it('refuses tags, a second document and half a file', () => {
    expect(faultsOf('a: !!binary aGk=\n')).toHaveLength(1)
    expect(faultsOf('a: !reset x\n')).toHaveLength(1)
    expect(faultsOf('a: 1\n---\nb: 1\n')).toHaveLength(1)
    expect(faultsOf('a: "half')).toHaveLength(1)
  })

  it('does not let aliases or nesting eat the memory, and takes a few of either', () => {
    const bomb = [
      'a: &a [1,1,1,1,1,1,1,1,1,1]',
      ...'bcdefgh'.split('').map((name, at) => `${name}: &${name} [${Array<string>(10).fill(`*${'abcdefg'[at]}`).join()}]`),
    ]
    expect(faultsOf(bomb.join('\n'))[0]).toMatch(/aliases/)
    for (const open of ['[', '{', '- ', '? ']) expect(faultsOf(open.repeat(100_000))[0], open).toMatch(/nested too deeply/)
    expect(faultsOf(`a: ${'['.repeat(200)}${']'.repeat(200)}`)[0]).toMatch(/nested too deeply/)
    expect(faultsOf('a: &a [1]\nb: *a\nc: *a\n')).toEqual([])
  })

  it('takes a mapping of very many keys in time that does not grow with their square', () => {
    // With the square of 30,000 this would take minutes.
    const many = Array.from({ length: 30_000 }, (_, at) => `k${at}: v`).join('\n')
    expect(faultsOf(`${many}\nk7: v`)).toEqual(['30001:1: this key is there twice. Keep one of them'])
  })

  it('refuses a file of more than 4 MiB, and takes one of less', () => {
    expect(faultsOf(`a: ${'x'.repeat(4 * 1024 * 1024)}`)[0]).toMatch(/larger than 4 MiB/)
    expect(faultsOf(`a: ${'x'.repeat(1024 * 1024)}`)).toEqual([])
  })

  it('knows where keys and values stand, and the nearest place of what was merged in', () => {
    const document = parsed('base: &b {x: 1}\nlist:\n- k: v\n- <<: *b\n', 'f')
    expect(document.spotOf(['list', 0, 'k'], 'key')).toEqual({ file: 'f', line: 3, column: 3 })
    expect(document.spotOf(['list', 0, 'k'])).toEqual({ file: 'f', line: 3, column: 6 })
    expect(document.spotOf(['list', 1, 'x'])).toEqual({ file: 'f', line: 4, column: 3 })
    expect(document.spotOf(['nowhere'])).toEqual({ file: 'f', line: 1, column: 1 })
  })
})
