/**
 * The program of the version before, as its users have it while they upgrade: of the last tag, and before there is one, of the commit that lacks this version's
 * newest migration. Taken from the history of this repository.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { migrations } from '../../src/store/migrations/index.ts'

const root = resolve(import.meta.dirname, '../..')
const folder = 'src/store/migrations'

export type Before = { kind: 'found'; commit: string; what: string } | { kind: 'missing'; why: string }

const git = (...args: string[]): string =>
  execFileSync('git', ['-C', root, ...args], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()

const has = (commit: string, path: string): boolean => {
  try {
    git('cat-file', '-e', `${commit}:${path}`)
    return true
  } catch {
    return false
  }
}

const withoutMigration = (file: string): Before => {
  // Written and not committed yet.
  if (!has('HEAD', file)) return { kind: 'found', commit: git('rev-parse', 'HEAD'), what: `the last commit, which lacks ${file}` }
  const [brought] = git('log', '--first-parent', '-m', '--diff-filter=A', '--format=%H', 'HEAD', '--', file).split('\n')
  try {
    return { kind: 'found', commit: git('rev-parse', '--verify', '--quiet', `${brought}^1`), what: `the last commit without ${file}` }
  } catch {
    return { kind: 'missing', why: `the history here begins with ${file}: git fetch --unshallow --tags` }
  }
}

/** Where the version before is to be had, if at all: a shallow clone or an unpacked archive has no history. */
export const findBefore = (): Before => {
  const newest = migrations.findLast((one) => one.mark === 'expand')
  if (newest === undefined) return { kind: 'missing', why: 'no migration is marked expand' }
  try {
    const [tag] = git('tag', '--merged', 'HEAD', '--no-contains', 'HEAD', '--sort=-version:refname').split('\n')
    if (tag) return { kind: 'found', commit: git('rev-parse', `${tag}^{commit}`), what: `tag ${tag}` }
    return withoutMigration(`${folder}/${String(newest.number).padStart(4, '0')}-${newest.name}.ts`)
  } catch {
    return { kind: 'missing', why: 'there is no git history here: clone the repository' }
  }
}

/** Unpacks it beside this checkout's dependencies. @returns where its program is, and how to take it away again */
export const unpackBefore = (before: Before & { kind: 'found' }): { program: string; remove(): void } => {
  const at = mkdtempSync(join(tmpdir(), 'leasehold-before-'))
  mkdirSync(at, { recursive: true })
  const archive = execFileSync('git', ['-C', root, 'archive', '--format=tar', before.commit, 'bin', 'src', 'package.json'], {
    maxBuffer: 256 * 1024 * 1024,
  })
  execFileSync('tar', ['-x', '-C', at], { input: archive })
  const program = join(at, 'bin', 'leasehold')
  if (!existsSync(program)) throw new Error(`${before.what} has no bin/leasehold`)
  symlinkSync(join(root, 'node_modules'), join(at, 'node_modules'))
  return { program, remove: () => rmSync(at, { recursive: true, force: true }) }
}
