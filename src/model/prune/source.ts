/** Where an application is declared: a repository, a revision of it, and the release file in it. */
import { blame, mapping, text, type Reader } from './reader.ts'
import type { Path } from './document.ts'
import { joinPath } from './repository-path.ts'

export interface Source {
  /** `https://…`, or an absolute path on this machine; never with a credential in it. */
  repoURL: string
  /** A branch, a tag, or a whole commit id. */
  revision: string
  /** Tidied, inside the repository. */
  releaseFile: string
}

/** Null: something is wrong with it, and faults say what. */
export const readSource = (reader: Reader, path: Path): Source | null => {
  if (!mapping(reader, path, ['repoURL', 'revision', 'releaseFile'], { chart: 'not supported yet' })) return null
  const repoURL = text(reader, [...path, 'repoURL'], 'Name the repository: https://…, or an absolute path')
  const revision = text(reader, [...path, 'revision'], 'Name a branch, a tag or a commit')
  const named = text(reader, [...path, 'releaseFile'], 'Name the release file in the repository')
  const repositoryWrong = repoURL === undefined ? null : repositoryProblem(repoURL)
  if (repositoryWrong) blame(reader, [...path, 'repoURL'], repositoryWrong.message, repositoryWrong.fix)
  const revisionWrong = revision === undefined ? null : revisionProblem(revision)
  if (revisionWrong) blame(reader, [...path, 'revision'], revisionWrong.message, revisionWrong.fix)
  const releaseFile = named === undefined ? undefined : joinPath('', named)
  if (releaseFile === null || releaseFile === '') {
    blame(
      reader,
      [...path, 'releaseFile'],
      `"${named}" is no path in the repository`,
      'Write it from the top of the repository, without "..": deploy/releases.yaml',
    )
  }
  if (repoURL === undefined || revision === undefined || !releaseFile || repositoryWrong || revisionWrong) return null
  return { repoURL, revision, releaseFile }
}

interface Problem {
  message: string
  fix: string
}

/** Null: it can be fetched from. The address itself is not repeated where it may hold a credential. */
export const repositoryProblem = (repoURL: string): Problem | null => {
  if (/[\s\p{Cc}]/u.test(repoURL)) return { message: 'repoURL has blanks in it', fix: 'Take them out' }
  if (repoURL.startsWith('/')) {
    return repoURL.split('/').includes('..') ? { message: 'repoURL has ".." in it', fix: 'Write the path that it leads to' } : null
  }
  if (!repoURL.startsWith('https://')) {
    return { message: 'repoURL is neither https://… nor an absolute path', fix: 'Other ways to a repository are not supported yet' }
  }
  const rest = repoURL.slice('https://'.length)
  if (rest.split('/')[0]?.includes('@')) {
    return { message: 'repoURL has a credential in it', fix: 'Take it out, and put it into the file of credentials' }
  }
  if (!/^[A-Za-z0-9.-]+(?::\d{1,5})?\/[^?#]+$/.test(rest))
    return { message: 'repoURL is no address of a repository', fix: 'Write https://host/path' }
  return null
}

/** The rules of git for names of branches and tags, so that no revision is taken for an option or an expression. */
export const revisionProblem = (revision: string): Problem | null => {
  const plain = /^[^\s\p{Cc}~^:?*[\\]+$/u.test(revision) && !revision.includes('..') && !revision.includes('@{') && !revision.includes('//')
  if (plain && !/^[-/.]|[/.]$|\.lock$/.test(revision) && revision.length <= 250) return null
  return { message: `"${revision.slice(0, 100)}" is no revision`, fix: 'Name a branch, a tag, or a whole commit id' }
}
