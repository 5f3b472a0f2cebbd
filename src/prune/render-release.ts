/** A release of a tree of files as the objects of a Swarm: values, Compose files, schema, merge, conversion. All that is wrong is found at once. */
import type { Allow } from '../model/prune/app-set.ts'
import { parseEnvFile, type EnvLine } from '../model/prune/compose/env-file.ts'
import { mergeCompose } from '../model/prune/compose/merge.ts'
import { envFilesOf, normalizeCompose } from '../model/prune/compose/normalize.ts'
import { spotIn } from '../model/prune/compose/place.ts'
import { refusedKeys } from '../model/prune/compose/refused.ts'
import type { Compose, Problem } from '../model/prune/compose/types.ts'
import { isMap, kindOf, type Document, type JsonMap, type Path } from '../model/prune/document.ts'
import { faultAt, faultOf, inOrder, type Fault } from '../model/prune/fault.ts'
import { interpolate, type Values } from '../model/prune/interpolate.ts'
import type { ReleaseEntry } from '../model/prune/release-file.ts'
import { folderOf, joinPath } from '../model/prune/repository-path.ts'
import { reachProblems } from '../model/prune/swarm/allow.ts'
import { convertRelease } from '../model/prune/swarm/convert.ts'
import type { Stamp } from '../model/prune/swarm/stamp.ts'
import type { ReleaseObjects } from '../model/prune/swarm/types.ts'
import { mergeValues } from '../model/prune/values.ts'
import { checkCompose } from './compose-schema.ts'
import { textOf, type FileTree } from './file-tree.ts'
import { parseYaml } from './yaml.ts'

export interface RenderInput {
  tree: FileTree
  release: ReleaseEntry
  /** Null: objects carry the release's name only. */
  stamp: Stamp | null
  /** Null: what the application may reach is not known here, and not checked. */
  allow: Allow | null
  /** The release file, for faults about what it names. */
  releaseFile: Document
}

export type RenderResult = { ok: true; objects: ReleaseObjects; compose: Compose } | { ok: false; faults: Fault[] }

export const renderRelease = async (input: RenderInput): Promise<RenderResult> => {
  const faults: Fault[] = []
  const documents = async (key: 'compose' | 'values'): Promise<Document[]> => {
    const read = input.release[key].map((path, index) => readDocument(input, path, ['releases', input.release.index, key, index], faults))
    return (await Promise.all(read)).filter((one) => one !== null)
  }
  const values = mergeValues(await documents('values'))
  const files = await documents('compose')
  if (!values.ok) faults.push(...values.faults)
  // Without all files and values, what follows would blame variables and names that are there.
  if (!values.ok || faults.length > 0) return { ok: false, faults: inOrder(faults) }
  const folder = folderOf(input.release.compose[0] ?? '')
  const read: ReadFile[] = []
  for (const document of files) read.push(await readCompose(document, values.values, { tree: input.tree, folder, faults }))
  if (faults.length > 0) return { ok: false, faults: inOrder(faults) }
  return await assemble(input, { files, composes: read.map((one) => one.compose), folder }, faults)
}

const readDocument = async ({ tree, releaseFile }: RenderInput, path: string, named: Path, faults: Fault[]): Promise<Document | null> => {
  const file = await tree.read(path)
  const text = file.ok ? textOf(file.bytes) : null
  if (!file.ok) faults.push(faultAt(releaseFile.spotOf(named), `${path}: ${file.message}`, 'Paths are read from the folder of this file'))
  else if (text === null) faults.push(faultOf(path, 'it is no text in UTF-8'))
  if (text === null) return null
  const parsed = parseYaml(path, text)
  if (parsed.ok) return parsed.document
  faults.push(...parsed.faults)
  return null
}

interface Around {
  tree: FileTree
  /** Of the first Compose file: what relative paths begin at. */
  folder: string
  faults: Fault[]
}
interface ReadFile {
  compose: Compose
}

const sections = ['services', 'networks', 'volumes', 'configs', 'secrets']

const readCompose = async (document: Document, values: Values, around: Around): Promise<ReadFile> => {
  const empty: Compose = { services: {}, networks: {}, volumes: {}, configs: {}, secrets: {} }
  const { faults } = around
  const before = faults.length
  const blame = (problem: Problem): void =>
    void faults.push(faultAt(document.spotOf(problem.path, problem.of), problem.message, problem.fix))
  if (!isMap(document.value)) {
    faults.push(
      faultAt(document.spotOf([]), `a Compose file must be a mapping, and is ${kindOf(document.value)}`, 'Write services: at its top'),
    )
    return { compose: empty }
  }
  const refused = refusedKeys(document.value)
  for (const one of refused) blame(one)
  // Only where Compose looks for variables: an extension (`x-…`) may hold any text.
  const used = Object.fromEntries(Object.entries(document.value).filter(([key]) => sections.includes(key)))
  const { value, problems } = interpolate(used, values)
  for (const one of problems) blame(one)
  const whole: JsonMap = { ...document.value, ...(value as JsonMap) }
  faults.push(...checkCompose(document, whole, [...refused.map((one) => one.path), ...problems.map((one) => one.path)]))
  if (faults.length > before) return { compose: empty }
  const envFiles = new Map<string, readonly EnvLine[]>()
  for (const { path, file } of envFilesOf(whole)) {
    const lines = await readEnvFile(file, around)
    if (lines.ok) envFiles.set(file, lines.lines)
    else
      faults.push(
        lines.fault ??
          faultAt(document.spotOf(path), `${file}: ${lines.message}`, 'Paths are read from the folder of the first Compose file'),
      )
  }
  const normal = normalizeCompose(whole, { values, envFile: (file) => envFiles.get(file) })
  for (const one of normal.problems) blame(one)
  return { compose: normal.compose }
}

type EnvResult = { ok: true; lines: readonly EnvLine[] } | { ok: false; message: string; fault: Fault | null }

const readEnvFile = async (file: string, { tree, folder }: Around): Promise<EnvResult> => {
  const path = joinPath(folder, file)
  const read = path === null ? null : await tree.read(path)
  if (path === null || read === null) return { ok: false, message: 'the path leads out of the repository', fault: null }
  if (!read.ok) return { ok: false, message: read.message, fault: null }
  const text = textOf(read.bytes)
  if (text === null) return { ok: false, message: '', fault: faultOf(path, 'it is no text in UTF-8') }
  const parsed = parseEnvFile(text)
  if (parsed.ok) return parsed
  return {
    ok: false,
    message: '',
    fault: { file: path, line: parsed.line, column: 1, message: parsed.message, fix: 'Write NAME=value, one a line' },
  }
}

interface Files {
  files: readonly Document[]
  composes: readonly Compose[]
  folder: string
}

const assemble = async (input: RenderInput, { files, composes, folder }: Files, faults: Fault[]): Promise<RenderResult> => {
  const merged = mergeCompose(composes)
  for (const one of merged.problems) faults.push(faultAt((files[one.file] as Document).spotOf(one.path, 'key'), one.message, one.fix))
  // The places of lists of several files are not those of any one of them.
  const spot = ({ path, of }: Problem): Fault => {
    const number = files.length > 1 ? path.findIndex((step) => typeof step === 'number') : -1
    return faultAt(spotIn(files, number < 0 ? path : path.slice(0, number), of), '', null)
  }
  const blame = (problem: Problem): void => void faults.push({ ...spot(problem), message: problem.message, fix: problem.fix })
  const contents = new Map<string, Uint8Array>()
  for (const section of ['configs', 'secrets'] as const) {
    for (const [key, { file, external }] of Object.entries(merged.compose[section])) {
      if (external || file === undefined) continue
      const path = joinPath(folder, file)
      const read = path === null ? { ok: false as const, message: 'the path leads out of the repository' } : await input.tree.read(path)
      if (read.ok) contents.set(file, read.bytes)
      else
        blame({
          path: [section, key, 'file'],
          message: `${file}: ${read.message}`,
          fix: 'Paths are read from the folder of the first Compose file',
        })
    }
  }
  const { objects, problems } = convertRelease({
    release: input.release.name,
    compose: merged.compose,
    stamp: input.stamp,
    content: (file) => contents.get(file),
  })
  for (const one of problems) blame(one)
  if (input.allow) for (const one of reachProblems(merged.compose, input.allow)) blame(one)
  return faults.length > 0 ? { ok: false, faults: inOrder(faults) } : { ok: true, objects, compose: merged.compose }
}
