/** Checks files of applications without a Swarm, a network or a coordinator: for CI, before anything is merged. */
import { basename, dirname, join, relative } from 'node:path'
import { repositoryRoot } from '../lib/git-root.ts'
import { readAppSet } from '../model/prune/app-set.ts'
import { isMap, type Document } from '../model/prune/document.ts'
import { faultAt, faultOf, inOrder, type Fault } from '../model/prune/fault.ts'
import { readReleaseFile } from '../model/prune/release-file.ts'
import { collisions } from '../model/prune/swarm/collisions.ts'
import type { ReleaseObjects } from '../model/prune/swarm/types.ts'
import { textOf } from './file-tree.ts'
import { folderTree } from './folder-tree.ts'
import { renderRelease } from './render-release.ts'
import { parseYaml } from './yaml.ts'

/** How many objects a release would have. */
export interface ReleaseSummary {
  name: string
  wave: number
  services: number
  networks: number
  configs: number
  secrets: number
  volumes: number
}

export interface FileReport {
  file: string
  /** Null: it could not be told. */
  kind: 'app-set' | 'releases' | null
  ok: boolean
  faults: Fault[]
  applications: string[]
  releases: ReleaseSummary[]
}

/**
 * `path` is absolute. What a release file names is read beside it, and nowhere outside of its repository (or its folder, if it is in none). Files are
 * called as seen from `from`.
 */
export const validateFile = async (path: string, from: string): Promise<FileReport> => {
  const root = repositoryRoot(dirname(path))
  const tree = folderTree(root)
  const inside = join(relative(root, dirname(path)), basename(path))
  const called = (file: string): string => relative(from, join(root, file)) || file
  const report = (kind: FileReport['kind'], faults: readonly Fault[], more: Partial<FileReport> = {}): FileReport => {
    const named = inOrder(faults).map((one) => ({ ...one, file: called(one.file) }))
    return { file: called(inside), kind, ok: faults.length === 0, faults: named, applications: [], releases: [], ...more }
  }
  const file = await tree.read(inside)
  const text = file.ok ? textOf(file.bytes) : null
  if (text === null) return report(null, [faultOf(inside, file.ok ? 'it is no text in UTF-8' : file.message)])
  const parsed = parseYaml(inside, text)
  if (!parsed.ok) return report(null, parsed.faults)
  const { document } = parsed
  const has = (key: string): boolean => isMap(document.value) && key in document.value
  if (has('applications')) {
    const result = readAppSet(document)
    return result.ok
      ? report('app-set', [], { applications: result.appSet.applications.map((one) => one.name) })
      : report('app-set', result.faults)
  }
  if (!has('releases')) return report(null, [neither(document)])
  const read = readReleaseFile(document, inside)
  if (!read.ok) return report('releases', read.faults)
  const faults: Fault[] = []
  const releases: ReleaseSummary[] = []
  const rendered: ReleaseObjects[] = []
  for (const release of read.releases) {
    const result = await renderRelease({ tree, release, stamp: null, allow: null, releaseFile: document })
    if (!result.ok) {
      faults.push(...result.faults)
      continue
    }
    rendered.push(result.objects)
    releases.push(summaryOf(result.objects, release.wave))
  }
  for (const { kind, name, first, second } of collisions(rendered)) {
    const index = read.releases.find((one) => one.name === second)?.index ?? 0
    const message = `the release ${second} would make the ${kind} "${name}", which is of the release ${first}`
    faults.push(faultAt(document.spotOf(['releases', index, 'name']), message, 'Give it another name, or use it as an external one'))
  }
  return report('releases', faults, { releases })
}

const neither = (document: Document): Fault => {
  const compose = isMap(document.value) && 'services' in document.value
  const message = compose ? 'this is a Compose file' : 'this is neither an app set (applications:) nor a release file (releases:)'
  const fix = compose ? 'Check the release file that names it' : 'Write one of these keys at the top'
  return faultAt(document.spotOf([]), message, fix)
}

const summaryOf = (objects: ReleaseObjects, wave: number): ReleaseSummary => ({
  name: objects.release,
  wave,
  services: objects.services.length,
  networks: objects.networks.length,
  configs: objects.configs.length,
  secrets: objects.secrets.length,
  volumes: objects.volumes.length,
})
