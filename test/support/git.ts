/** Repositories for tests, in folders of their own. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export interface TestRepository {
  folder: string
  git: (...args: string[]) => string
  /** Writes files and commits them; gives the commit. */
  commit: (files: Record<string, string>, links?: Record<string, string>) => string
}

export const scratchFolder = (): { folder: string; remove: () => void } => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-git-'))
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}

export const makeRepository = (folder: string): TestRepository => {
  mkdirSync(folder, { recursive: true })
  const git = (...args: string[]): string => {
    const who = { GIT_AUTHOR_NAME: 't', GIT_AUTHOR_EMAIL: 't@example.org', GIT_COMMITTER_NAME: 't', GIT_COMMITTER_EMAIL: 't@example.org' }
    const environment = { ...process.env, ...who, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
    return execFileSync('git', ['-c', 'protocol.file.allow=always', ...args], {
      cwd: folder,
      env: environment,
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim()
  }
  git('init', '--quiet', '--initial-branch=main')
  return {
    folder,
    git,
    commit: (files, links = {}) => {
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, path)), { recursive: true })
        writeFileSync(join(folder, path), text)
      }
      for (const [path, target] of Object.entries(links)) symlinkSync(target, join(folder, path))
      git('add', '-A')
      git('commit', '--quiet', '--allow-empty', '-m', 'x')
      return git('rev-parse', 'HEAD')
    },
  }
}
