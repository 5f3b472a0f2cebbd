import { existsSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The repository that a folder belongs to: the nearest folder upwards that holds `.git` (a folder, or a file in a worktree or
 * submodule), else the folder itself. Symbolic links are resolved, so that one repository has one name. Runs no git.
 */
export const repositoryRoot = (folder: string): string => {
  let start: string
  try {
    start = realpathSync(folder)
  } catch {
    start = folder
  }
  for (let at = start; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return at
    if (dirname(at) === at) return start
  }
}
