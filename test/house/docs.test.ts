import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { flagOf, readPage, stalePages } from '../../scripts/docs.ts'
import { runCli } from '../../src/cli/main.ts'
import type { Io } from '../../src/cli/support/io.ts'
import { resolveConfig, settingNames } from '../../src/model/config.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const documents = [...globSync('*.md', { cwd: root }), ...globSync('docs/**/*.md', { cwd: root })].toSorted()

/** Prints the help of a command as the program would. */
const helpOf = async (words: readonly string[]): Promise<string> => {
  let text = ''
  const keep = (part: string): void => void (text += part)
  const door = (): Promise<never> => Promise.reject(new Error('help enters no box'))
  const io: Io = { out: keep, err: keep, environment: {}, folder: root, home: root, colours: false, now: () => 0, door }
  await runCli([...words, '--help'], io)
  return text
}

describe('the generated pages', () => {
  it('say what the registries say', () => {
    expect(stalePages(readPage)).toEqual([])
  })

  it('would be found stale after any change, and when they are missing', () => {
    expect(stalePages((path) => `${readPage(path)} `)).toHaveLength(3)
    expect(stalePages(() => null)).toHaveLength(3)
  })

  it('name the flag of each setting, and none for a secret', async () => {
    const sample = { data: '/d', host: '::1', port: '1', url: 'none', logLevel: 'warn', project: 'p' } as const
    for (const name of settingNames) {
      const flag = flagOf(name)
      if (flag === null) {
        expect(await helpOf(['config'])).not.toContain(`--${name}`)
        continue
      }
      const flags = { [name]: sample[name as keyof typeof sample] }
      const result = resolveConfig({ flags, environment: {}, file: null, home: '/h', absolute: (path) => path })
      expect(result.ok && result.settings[name].origin).toBe(`flag ${flag}`)
      expect(await helpOf(['config'])).toContain(`${flag} `)
    }
  })
})

/** Relative links of a page that lead nowhere. */
const deadLinks = (file: string, text: string): string[] =>
  [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => (target as string).replace(/#.*$/, ''))
    .filter((target) => target !== '' && !/^[a-z]+:/.test(target) && !existsSync(join(root, dirname(file), target)))

/** Paths in code marks that are not there. A name with a `*`, a `<` or a `…` stands for several. */
const deadPaths = (text: string): string[] =>
  [...text.matchAll(/`((?:src|test|docs|scripts|bin)\/[^`\s]*)`/g)]
    .map(([, path]) => path as string)
    .filter((path) =>
      path.includes('*') ? globSync(path, { cwd: root }).length === 0 : !/[<…]/.test(path) && !existsSync(join(root, path)),
    )

/** `test/x.test.ts` "sentence": pairs whose file holds no such test. */
const deadTests = (text: string): string[] =>
  [...text.matchAll(/`(test\/[^`\s]+\.ts)`\s+"([^"]+)"/g)]
    .map(([, file, name]) => ({ file: file as string, name: (name as string).replace(/\s+/g, ' ') }))
    .filter(({ file, name }) => !existsSync(join(root, file)) || !read(file).includes(name))
    .map(({ file, name }) => `${file}: ${name}`)

/** First words of commands in code that is set off or marked: `leasehold hold add …` is `hold`. */
const commandsIn = (text: string): string[] =>
  [...text.matchAll(/(?:^ {4}|`)(?:bin\/)?leasehold ([a-z][a-z-]*)/gm)].map(([, name]) => name as string)

describe('the documents', () => {
  it.each(documents)('%s leads to what is there: links, paths and tests', (file) => {
    const text = read(file)
    expect({ links: deadLinks(file, text), paths: deadPaths(text), tests: deadTests(text) }).toEqual({ links: [], paths: [], tests: [] })
  })

  it('name commands that there are', async () => {
    const help = await helpOf([])
    const named = new Set(documents.flatMap((file) => commandsIn(read(file))))
    expect(named.size).toBeGreaterThan(10)
    const unknown = [...named].filter((name) => !new RegExp(`^  (?:[a-z-]+\\|)?${name}(?:\\||\\s)`, 'm').test(help))
    expect(unknown).toEqual([])
  })

  it('would not hide a dead link, path, test or command', () => {
    const text =
      'a [x](nowhere.md#y) of `src/nothing.ts`, held by `test/house/docs.test.ts` "no such sentence here at all" and `leasehold dance`'
    expect(deadLinks('README.md', text)).toEqual(['nowhere.md'])
    expect(deadPaths(text)).toEqual(['src/nothing.ts'])
    // Put together, so that this file does not hold what it looks for.
    expect(deadTests(text.replace('no such', 'no'.concat('t one such')))).toHaveLength(1)
    expect(commandsIn(text)).toEqual(['dance'])
  })
})
