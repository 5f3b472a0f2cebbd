/** A repository that files are taken from: fetched to a cache, one commit deep, and read at exactly that commit. */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../../lib/sha256.ts'
import { repositoryProblem, revisionProblem } from '../../model/prune/source.ts'
import type { FileTree } from '../file-tree.ts'
import { commitTree, parseTree } from './commit-tree.ts'
import { runGit, type GitCall, type GitCredential, type GitLimits, type GitOutcome } from './run.ts'

export interface RepositoryOptions {
  /** `https://…`, or an absolute path. */
  url: string
  /** A folder of ours; each repository gets one in it. */
  cache: string
  credential: GitCredential | null
  limits: GitLimits
  environment: GitCall['environment']
}

export type FetchResult = { ok: true; commit: string; tree: FileTree; fetched: boolean } | { ok: false; message: string }

export interface Repository {
  /** The files at a branch, a tag or a commit, as that stands now. Fetches only what the cache does not have. */
  fetch(revision: string, signal?: AbortSignal): Promise<FetchResult>
}

export const defaultLimits: GitLimits = { timeoutMs: 120_000, mostBytes: 256 * 1024 * 1024 }

/** More packs than this, and the cache is made anew: nothing else throws old commits away. */
const mostPacks = 50
const wholeId = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/

const refuse = (message: string): { ok: false; message: string } => ({ ok: false, message })

export const openRepository = (options: RepositoryOptions): Repository => {
  const { url, credential, limits, environment } = options
  const folder = join(options.cache, sha256(url).slice(0, 24))
  const protocol = url.startsWith('/') ? 'file' : 'https'
  const local = (args: readonly string[]): Promise<GitOutcome> => runGit({ folder, args, protocol: null, limits, environment })
  const remote = (args: readonly string[], signal: AbortSignal | undefined): Promise<GitOutcome> =>
    runGit({
      folder,
      args,
      protocol,
      limits,
      environment,
      ...(credential && protocol === 'https' && { credential: { url, value: credential } }),
      ...(signal && { signal }),
    })

  /** What a killed git left locked, and what has grown too old, is thrown away: it is only a cache. */
  const prepare = async (): Promise<GitOutcome> => {
    const names = await readdir(folder, { recursive: true }).catch((): string[] => [])
    const locked = names.some((one) => one.endsWith('.lock') || /(?:^|\/)tmp_/.test(one))
    const packs = names.filter((one) => one.endsWith('.pack')).length
    if (names.includes('HEAD') && !locked && packs <= mostPacks) return { ok: true, stdout: Buffer.alloc(0) }
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return await local(['init', '--quiet', '--bare', '--template=', '--initial-branch=none', folder])
  }

  const commitOf = async (name: string): Promise<string | null> => {
    const found = await local(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`])
    const id = found.ok ? found.stdout.toString().trim() : ''
    return wholeId.test(id) ? id : null
  }

  const pin = async (
    revision: string,
    signal: AbortSignal | undefined,
  ): Promise<{ ok: true; commit: string; fetched: boolean } | { ok: false; message: string }> => {
    let wanted = revision
    if (wholeId.test(revision)) {
      if (await commitOf(revision)) return { ok: true, commit: revision, fetched: false }
    } else {
      const listed = await remote(['ls-remote', '--quiet', '--', url, ...namesOf(revision).flatMap((one) => [one, `${one}^{}`])], signal)
      if (!listed.ok) return listed
      const found = chosen(listed.stdout.toString(), revision)
      if (!found.ok) return found
      if (await commitOf(found.commit)) return { ok: true, commit: found.commit, fetched: false }
      wanted = found.name
    }
    const kept = `refs/leasehold/${sha256(revision).slice(0, 16)}`
    const flags = ['--quiet', '--depth=1', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--no-auto-gc', '--force']
    const fetched = await remote(['fetch', ...flags, '--', url, `${wanted}:${kept}`], signal)
    if (!fetched.ok) return fetched
    const commit = await commitOf(kept)
    if (commit === null) return refuse(`${revision} is no commit`)
    return wholeId.test(revision) && commit !== revision
      ? refuse(`the repository gave ${commit} for ${revision}`)
      : { ok: true, commit, fetched: true }
  }

  const fetchNow = async (revision: string, signal: AbortSignal | undefined): Promise<FetchResult> => {
    const problem = repositoryProblem(url) ?? revisionProblem(revision)
    if (problem) return refuse(problem.message)
    const ready = await prepare()
    if (!ready.ok) return ready
    const pinned = await pin(revision, signal)
    if (!pinned.ok) return pinned
    const listed = await local(['ls-tree', '-r', '-l', '-z', '--full-tree', pinned.commit])
    const entries = listed.ok ? parseTree(listed.stdout.toString()) : null
    if (!listed.ok || entries === null) return refuse(listed.ok ? 'its list of files can not be read' : listed.message)
    const tree = commitTree(`${url}@${pinned.commit.slice(0, 12)}`, entries, (object) => local(['cat-file', 'blob', object]))
    return { ok: true, commit: pinned.commit, tree, fetched: pinned.fetched }
  }

  let last: Promise<unknown> = Promise.resolve()
  return {
    fetch: (revision, signal) => {
      // One at a time: git locks its own files, and a second one would only fail.
      const result = last.then(() => fetchNow(revision, signal))
      last = result.catch(() => undefined)
      return result
    },
  }
}

const namesOf = (revision: string): string[] =>
  revision.startsWith('refs/') ? [revision] : [`refs/heads/${revision}`, `refs/tags/${revision}`]

/** An annotated tag is listed twice: as the tag, and with `^{}` as what it points to. */
const chosen = (listing: string, revision: string): { ok: true; name: string; commit: string } | { ok: false; message: string } => {
  const ids = new Map(
    listing
      .split('\n')
      .flatMap((line) => (/^[0-9a-f]{40,64}\t/.test(line) ? [[line.split('\t')[1] as string, line.split('\t')[0] as string]] : [])),
  )
  const found = namesOf(revision).filter((one) => ids.has(one))
  const [name] = found
  if (name === undefined) return refuse(`it has no branch or tag ${revision}`)
  if (found.length > 1) return refuse(`${revision} is a branch and a tag: write ${found.join(' or ')}`)
  return { ok: true, name, commit: ids.get(`${name}^{}`) ?? (ids.get(name) as string) }
}
