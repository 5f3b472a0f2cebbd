import { describe, expect, it } from 'vitest'
import { parseEnvFile } from '../../../src/model/prune/compose/env-file.ts'
import { parseMount } from '../../../src/model/prune/compose/mounts.ts'
import { parsePorts } from '../../../src/model/prune/compose/ports.ts'
import { shellWords } from '../../../src/model/prune/compose/shell-words.ts'
import { goDuration, nanoCpus, ramBytes } from '../../../src/model/prune/compose/units.ts'

describe('the short forms of Compose', () => {
  it.each([
    ['1h30m', 5_400_000_000_000],
    ['1.5s', 1_500_000_000],
    ['500ms', 500_000_000],
    ['0.1us', 100],
    ['-2s', -2_000_000_000],
    ['0', 0],
    ['5', null],
    ['1d', null],
    ['', null],
    ['s', null],
    ['1s ', null],
    ['3000h', null],
  ])('duration %s', (text, expected) => expect(goDuration(text)).toBe(expected))

  it.each([
    ['64m', 64 * 2 ** 20],
    ['1.5GiB', 1.5 * 2 ** 30],
    ['100', 100],
    ['2kb', 2048],
    ['1 m', 2 ** 20],
    ['m', null],
    ['1x', null],
    ['-1', null],
  ])('size %s', (text, expected) => expect(ramBytes(text)).toBe(expected))

  it.each([
    ['0.5', 500_000_000],
    ['2', 2_000_000_000],
    ['.25', 250_000_000],
    ['0.000000001', 1],
    ['0.0000000001', null],
    ['1e3', null],
    ['', null],
  ])('CPUs %s', (text, expected) => expect(nanoCpus(text)).toBe(expected))

  it.each([
    [`sh -c "a  b" 'c "d"' e\\ f`, ['sh', '-c', 'a  b', 'c "d"', 'e f']],
    ['a # b', ['a']],
    ['a#b "#c"', ['a#b', '#c']],
    ["''", ['']],
    ['', []],
    ['"\\"x"', ['"x']],
    ['a "b', null],
    ['a \\', null],
  ])('command %s', (text, expected) => expect(shellWords(text)).toEqual(expected))

  it.each([
    ['80', ['0:80/tcp']],
    ['8080:80', ['8080:80/tcp']],
    ['8000-8001:80-81/UDP', ['8000:80/udp', '8001:81/udp']],
    ['8000-8001:80', ['8000:80/tcp', '8001:80/tcp']],
    ['90-91', ['0:90/tcp', '0:91/tcp']],
    ['127.0.0.1:80:80', null],
    ['[::1]:80:80', null],
    ['8000-8002:80-81', null],
    ['80/foo', null],
    ['70000', null],
    ['0', null],
    ['a:b', null],
    ['9-8', null],
  ])('port %s', (text, expected) => {
    const found = parsePorts(text)
    expect(found.ok ? found.ports.map((one) => `${one.published}:${one.target}/${one.protocol}`) : null).toEqual(expected)
  })

  it.each([
    ['/data', { type: 'volume', target: '/data' }],
    ['data:/data:ro,nocopy', { type: 'volume', source: 'data', target: '/data', readOnly: true, nocopy: true }],
    ['/a:/b:rslave', { type: 'bind', source: '/a', target: '/b', propagation: 'rslave' }],
    ['./a:/b', { type: 'bind', source: './a', target: '/b' }],
    ['v:/v', null],
    ['data:/data:z', null],
    ['data:/data:ro:x', null],
    ['data::ro', null],
  ])('mount %s', (text, expected) => {
    const found = parseMount(text)
    expect(found.ok ? found.mount : null).toEqual(expected)
  })

  it('a file of env_file is taken as it is, names trimmed on the left and values not at all', () => {
    expect(parseEnvFile('\uFEFFA=1\n# c\n\n  B=x = "y" \nC\nD=\r\n')).toEqual({
      ok: true,
      lines: [
        { name: 'A', value: '1' },
        { name: 'B', value: 'x = "y" ' },
        { name: 'C', value: null },
        { name: 'D', value: '' },
      ],
    })
  })

  it('a wrong line of env_file is named, and its value is not', () => {
    const found = parseEnvFile('A=1\nB C=hunter22\n')
    expect(found).toMatchObject({ ok: false, line: 2 })
    expect(JSON.stringify(found)).not.toContain('hunter22')
  })
})
