/** Releases out of texts: a tree of files in memory, and what becomes of it. */
import { readAppSet, type Allow, type AppSetResult } from '../../src/model/prune/app-set.ts'
import type { Compose } from '../../src/model/prune/compose/types.ts'
import type { Document } from '../../src/model/prune/document.ts'
import { faultLine, inOrder } from '../../src/model/prune/fault.ts'
import { readReleaseFile } from '../../src/model/prune/release-file.ts'
import type { Stamp } from '../../src/model/prune/swarm/stamp.ts'
import type { ReleaseObjects, ServiceSpec } from '../../src/model/prune/swarm/types.ts'
import type { FileTree } from '../../src/prune/file-tree.ts'
import { renderRelease, type RenderResult } from '../../src/prune/render-release.ts'
import { parseYaml } from '../../src/prune/yaml.ts'

export type Files = Readonly<Record<string, string>>

export const memoryTree = (files: Files): FileTree => ({
  name: 'memory',
  read: async (path) =>
    Object.hasOwn(files, path) ? { ok: true, bytes: Buffer.from(files[path] as string) } : { ok: false, message: 'there is no such file' },
})

export const parsed = (text: string, file = 'f.yaml'): Document => {
  const result = parseYaml(file, text)
  if (!result.ok) throw new Error(result.faults.map(faultLine).join('\n'))
  return result.document
}

/** `line:column: message. fix`, as they would be shown, without the file. */
export const faultsOf = (text: string): string[] => {
  const result = parseYaml('f', text)
  return result.ok ? [] : inOrder(result.faults).map((one) => faultLine(one).slice(2))
}

export const appSetFaults = (text: string): string[] => {
  const result: AppSetResult = readAppSet(parsed(text, 'f'))
  return result.ok ? [] : inOrder(result.faults).map((one) => faultLine(one).slice(2))
}

export interface RenderOptions {
  files?: Files
  values?: string
  stamp?: Stamp | null
  allow?: Allow | null
  name?: string
}

/** One release `app` of the given Compose files, `a.yml` and so on; other files stand beside them. */
export const render = async (composes: readonly string[], options: RenderOptions = {}): Promise<RenderResult> => {
  const names = composes.map((_, index) => `${String.fromCharCode(97 + index)}.yml`)
  const composeFiles = Object.fromEntries(composes.map((text, index) => [names[index] as string, text]))
  const values = options.values === undefined ? [] : ['values.yml']
  const releaseFile = parsed(JSON.stringify({ releases: [{ name: options.name ?? 'app', compose: names, values }] }), 'releases.yml')
  const read = readReleaseFile(releaseFile, 'releases.yml')
  if (!read.ok) return read
  const [release] = read.releases
  if (!release) throw new Error('no release')
  const tree = memoryTree({ ...composeFiles, ...(options.values !== undefined && { 'values.yml': options.values }), ...options.files })
  return await renderRelease({ tree, release, stamp: options.stamp ?? null, allow: options.allow ?? null, releaseFile })
}

export const rendered = async (
  composes: readonly string[],
  options: RenderOptions = {},
): Promise<{ objects: ReleaseObjects; compose: Compose }> => {
  const result = await render(composes, options)
  if (!result.ok) throw new Error(result.faults.map(faultLine).join('\n'))
  return result
}

export const renderFaults = async (composes: readonly string[], options: RenderOptions = {}): Promise<string[]> => {
  const result = await render(composes, options)
  return result.ok ? [] : result.faults.map(faultLine)
}

export const service = (objects: ReleaseObjects, name: string): ServiceSpec => {
  const found = objects.services.find((one) => one.Name === name)
  if (!found) throw new Error(`no service ${name}`)
  return found
}
