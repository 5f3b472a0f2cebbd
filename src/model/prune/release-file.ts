/** The release file of an application: its releases, each from Compose files and values (prune 2.2, narrowed: no charts). */
import type { Document } from './document.ts'
import type { Fault } from './fault.ts'
import { caseTwins, nameProblem, releaseName } from './names.ts'
import { blame, listAt, mapping, readerOf, text, texts, whole, type Reader } from './reader.ts'
import { folderOf, joinPath } from './repository-path.ts'

export interface ReleaseEntry {
  name: string
  /** Paths in the repository; each overrides the ones before it. */
  compose: readonly string[]
  /** Paths in the repository of flat YAML files; each overrides the ones before it. */
  values: readonly string[]
  /** Lower ones are applied first. */
  wave: number
  /** Where it stands in its file. */
  index: number
}

export type ReleaseFileResult = { ok: true; releases: ReleaseEntry[] } | { ok: false; faults: Fault[] }

const notYet = 'not supported yet'

/** `file` is the path of the release file in its repository: the files that it names stand beside it. */
export const readReleaseFile = (document: Document, file: string): ReleaseFileResult => {
  const reader = readerOf(document)
  const releases: ReleaseEntry[] = []
  if (
    mapping(reader, [], ['apiVersion', 'releases'], { repositories: notYet, owner: 'the owner is the application that names this file' })
  ) {
    const version = text(reader, ['apiVersion'])
    if (version !== undefined && version !== 'v1') blame(reader, ['apiVersion'], `apiVersion is "${version}"`, 'Write v1, or leave it out')
    const list = listAt(reader, ['releases'], 'Write "releases: []" if there shall be none')
    for (const index of (list ?? []).keys()) {
      const release = readRelease(reader, index, folderOf(file))
      if (release) releases.push(release)
    }
  }
  for (const { name, twin } of caseTwins(releases.map((one) => one.name))) {
    const index = releases.findLast((one) => one.name === name)?.index ?? 0
    const said =
      name === twin
        ? `there is a release "${name}" already`
        : `"${name}" and "${twin}" are one name to a Swarm, which compares without case`
    blame(reader, ['releases', index, 'name'], said, 'Names must differ')
  }
  return reader.faults.length > 0 ? { ok: false, faults: reader.faults } : { ok: true, releases }
}

const readRelease = (reader: Reader, index: number, folder: string): ReleaseEntry | null => {
  const path = ['releases', index]
  if (!mapping(reader, path, ['name', 'compose', 'values', 'wave'], { chart: notYet, version: 'there are no charts yet' })) return null
  const name = text(reader, [...path, 'name'], 'Give the release a name')
  if (name !== undefined) {
    const problem = releaseName.test(name) ? nameProblem('config', `${name}_x`) : `"${name}" is no name for a release`
    if (problem) blame(reader, [...path, 'name'], problem, 'Use letters, digits, "-", "_" and ".", with a letter or digit at both ends')
  }
  const files = (key: 'compose' | 'values'): string[] =>
    texts(reader, [...path, key]).flatMap((named, at) => {
      const joined = joinPath(folder, named)
      if (joined !== null && joined !== '') return [joined]
      blame(
        reader,
        [...path, key, at],
        `"${named}" is no path in the repository`,
        'Write it from the folder of this file, and not out of the repository',
      )
      return []
    })
  const given = listAt(reader, [...path, 'compose'], 'Name its Compose files: compose: [docker-compose.yml]')
  if (given?.length === 0) blame(reader, [...path, 'compose'], 'the release has no Compose file', 'Name at least one')
  const compose = given === null ? [] : files('compose')
  const values = files('values')
  const wave = whole(reader, [...path, 'wave'], { least: -1000, most: 1000, otherwise: 0 })
  return name === undefined ? null : { name, compose, values, wave, index }
}
