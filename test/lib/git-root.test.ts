import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { repositoryRoot } from '../../src/lib/git-root.ts'

let folder: string
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'leasehold-root-')))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('the repository of a folder', () => {
  it('is the nearest folder upwards with .git', () => {
    mkdirSync(join(folder, 'a/.git'), { recursive: true })
    mkdirSync(join(folder, 'a/b/c'), { recursive: true })
    expect(repositoryRoot(join(folder, 'a/b/c'))).toBe(join(folder, 'a'))
  })

  it('is the worktree, whose .git is a file', () => {
    mkdirSync(join(folder, 'a/.git'), { recursive: true })
    mkdirSync(join(folder, 'a/tree/src'), { recursive: true })
    writeFileSync(join(folder, 'a/tree/.git'), 'gitdir: ../.git/worktrees/tree\n')
    expect(repositoryRoot(join(folder, 'a/tree/src'))).toBe(join(folder, 'a/tree'))
  })

  it('is the same by a symbolic link', () => {
    mkdirSync(join(folder, 'a/.git'), { recursive: true })
    symlinkSync(join(folder, 'a'), join(folder, 'link'))
    expect(repositoryRoot(join(folder, 'link'))).toBe(join(folder, 'a'))
  })

  it('is the folder itself outside of every repository', () => {
    mkdirSync(join(folder, 'x'))
    expect(repositoryRoot(join(folder, 'x'))).toBe(join(folder, 'x'))
  })
})
