import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FileTree } from '../../../src/prune/file-tree.ts'
import { defaultLimits, openRepository, type Repository, type RepositoryOptions } from '../../../src/prune/git/repository.ts'
import { makeRepository, scratchFolder, type TestRepository } from '../../support/git.ts'

let scratch: ReturnType<typeof scratchFolder>
let source: TestRepository
beforeEach(() => {
  scratch = scratchFolder()
  source = makeRepository(join(scratch.folder, 'source'))
})
afterEach(() => scratch.remove())

const open = (changes: Partial<RepositoryOptions> = {}): Repository =>
  openRepository({
    url: source.folder,
    cache: join(scratch.folder, 'cache'),
    credential: null,
    limits: defaultLimits,
    environment: process.env,
    ...changes,
  })

const fetched = async (repository: Repository, revision: string) => {
  const result = await repository.fetch(revision)
  if (!result.ok) throw new Error(result.message)
  return result
}
const refusal = async (repository: Repository, revision: string): Promise<string> => {
  const result = await repository.fetch(revision)
  return result.ok ? 'no refusal' : result.message
}
const read = async (tree: FileTree, path: string): Promise<string> => {
  const file = await tree.read(path)
  return file.ok ? Buffer.from(file.bytes).toString() : `! ${file.message}`
}

// Each step starts several processes, which on a busy machine takes its time.
describe('a repository', { timeout: 120_000 }, () => {
  it('is read at exactly the commit that a branch, a tag or an id names, also when the branch has moved since (prune 2.6)', async () => {
    const first = source.commit({ 'a/b.txt': 'one' })
    source.git('tag', '-a', 'v1', '-m', 'x')
    const repository = open()
    const before = await fetched(repository, 'main')
    expect({ commit: before.commit, fetched: before.fetched }).toEqual({ commit: first, fetched: true })
    const second = source.commit({ 'a/b.txt': 'two' })
    const after = await fetched(repository, 'main')
    expect(after.commit).toBe(second)
    expect([await read(before.tree, 'a/b.txt'), await read(after.tree, 'a/b.txt')]).toEqual(['one', 'two'])
    expect((await fetched(repository, 'v1')).commit).toBe(first)
    expect((await fetched(repository, 'refs/heads/main')).commit).toBe(second)
    expect(await read((await fetched(repository, first)).tree, 'a/b.txt')).toBe('one')
  })

  it('is fetched again only when there is something new, also by the next process', async () => {
    const first = source.commit({ f: '1' })
    await fetched(open(), 'main')
    expect((await fetched(open(), 'main')).fetched).toBe(false)
    source.commit({ f: '2' })
    expect((await fetched(open(), 'main')).fetched).toBe(true)
    // What is named by its id needs nobody.
    renameSync(source.folder, `${source.folder}-away`)
    expect((await fetched(open(), first)).fetched).toBe(false)
  })

  it('says what is wrong when it is not there, has no such revision, or one of two meanings', async () => {
    source.commit({ f: '1' })
    source.git('branch', 'both')
    source.git('tag', 'both')
    expect(await refusal(open(), 'nowhere')).toBe('it has no branch or tag nowhere')
    expect(await refusal(open(), 'both')).toBe('both is a branch and a tag: write refs/heads/both or refs/tags/both')
    expect(await refusal(open(), 'f'.repeat(40))).not.toBe('no refusal')
    expect(await refusal(open({ url: join(scratch.folder, 'gone') }), 'main')).toMatch(/does not (?:appear|exist)/)
    expect(await refusal(open({ url: 'ext::sh -c "touch /tmp/x"' }), 'main')).toMatch(/repoURL/)
    expect(await refusal(open(), '--upload-pack=id')).toMatch(/is no revision/)
  })

  it('follows links within the commit, and none that leads out', async () => {
    const files = { 'a/real.txt': 'real', 'deep/er/x': 'x' }
    const links = {
      'a/in': 'real.txt',
      dir: 'deep',
      out: '../../etc/passwd',
      abs: '/etc/passwd',
      'a/up': '../../x',
      loop: 'loop',
      'deep/back': '../a',
    }
    source.commit(files, links)
    const { tree } = await fetched(open(), 'main')
    expect(await read(tree, 'a/in')).toBe('real')
    expect(await read(tree, 'dir/er/x')).toBe('x')
    expect(await read(tree, 'dir/back/in')).toBe('real')
    for (const path of ['out', 'abs', 'a/up']) expect(await read(tree, path), path).toBe('! a link leads out of the repository')
    expect(await read(tree, 'loop')).toBe('! its links go round in a circle')
    for (const path of ['../source/a/real.txt', '/etc/passwd', ''])
      expect(await read(tree, path), path).toBe('! the path leads out of the repository')
    expect(await read(tree, 'a')).toBe('! there is no such file')
    expect(await read(tree, 'none')).toBe('! there is no such file')
  })

  it('fetches no submodule, and says so', async () => {
    const inner = makeRepository(join(scratch.folder, 'inner'))
    inner.commit({ f: 'inner' })
    source.git('submodule', 'add', '--quiet', inner.folder, 'sub')
    source.commit({ f: '1' })
    const { tree } = await fetched(open(), 'main')
    expect(await read(tree, 'sub/f')).toBe('! it is in a submodule, and these are not fetched')
  })

  it('runs no hook, no filter and nothing else of the repository, the user or the machine', async () => {
    const mark = join(scratch.folder, 'ran')
    const hook = join(scratch.folder, 'hook')
    writeFileSync(hook, `#!/bin/sh\necho "$0" >> ${mark}\ncat\n`)
    chmodSync(hook, 0o755)
    source.commit({ f: 'plain', '.gitattributes': '* filter=evil\n' })
    for (const name of ['post-checkout', 'reference-transaction', 'post-update', 'pre-receive']) {
      writeFileSync(join(source.folder, '.git/hooks', name), `#!/bin/sh\ntouch ${mark}\n`)
      chmodSync(join(source.folder, '.git/hooks', name), 0o755)
    }
    source.git('config', 'uploadpack.packObjectsHook', hook)
    const other = makeRepository(join(scratch.folder, 'other'))
    other.commit({ f: 'other' })
    const home = join(scratch.folder, 'home')
    mkdirSync(home)
    const config = `[core]\n hooksPath = ${join(source.folder, '.git/hooks')}\n fsmonitor = ${hook}\n[filter "evil"]\n smudge = ${hook}\n[url "${other.folder}"]\n insteadOf = ${source.folder}\n[credential]\n helper = !${hook}\n`
    writeFileSync(join(home, '.gitconfig'), config)
    const environment = {
      ...process.env,
      HOME: home,
      GIT_CONFIG_GLOBAL: join(home, '.gitconfig'),
      GIT_TRACE: mark,
      GIT_EXTERNAL_DIFF: hook,
      GIT_TEMPLATE_DIR: join(source.folder, '.git'),
      GIT_CONFIG_PARAMETERS: `'core.hooksPath=${source.folder}/.git/hooks'`,
    }
    const { tree } = await fetched(open({ environment }), 'main')
    expect(await read(tree, 'f')).toBe('plain')
    expect(existsSync(mark)).toBe(false)
  })

  it('of more than the limit is refused, and of less is taken', async () => {
    source.commit({ f: randomBytes(3 * 1024 * 1024).toString('base64') })
    expect(await refusal(open({ limits: { ...defaultLimits, mostBytes: 1024 * 1024 } }), 'main')).toBe('it is larger than 1 MiB')
    expect((await fetched(open(), 'main')).fetched).toBe(true)
  })

  it('refuses a file of more than 4 MiB without reading it', async () => {
    source.commit({ big: 'x'.repeat(5 * 1024 * 1024), small: 'x' })
    const { tree } = await fetched(open(), 'main')
    expect(await read(tree, 'big')).toBe('! it is larger than 4 MiB')
    expect(await read(tree, 'small')).toBe('x')
  })

  it('throws away a cache that a killed git left locked', async () => {
    source.commit({ f: '1' })
    await fetched(open(), 'main')
    const [cache = ''] = readdirSync(join(scratch.folder, 'cache'))
    writeFileSync(join(scratch.folder, 'cache', cache, 'shallow.lock'), '')
    source.commit({ f: '2' })
    expect(await read((await fetched(open(), 'main')).tree, 'f')).toBe('2')
  })

  it('is fetched once at a time, whatever is asked for at once', async () => {
    source.commit({ f: '1' })
    source.git('branch', 'next')
    const repository = open()
    const all = await Promise.all(['main', 'next', 'main', 'none'].map((one) => repository.fetch(one)))
    expect(all.map((one) => one.ok)).toEqual([true, true, true, false])
  })
})
