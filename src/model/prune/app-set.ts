/**
 * The app set file: which applications an installation runs, and where each is declared (prune 2.2). Strict: an unknown key, a duplicate, a wrong
 * type refuses the whole file, so that a misspelt `applications` never reads as "there are none".
 */
import { valueAt, type Document, type Path } from './document.ts'
import type { Fault } from './fault.ts'
import { applicationName } from './names.ts'
import { blame, duration, flag, listAt, mapping, oneOf, readerOf, text, texts, whole, type Reader } from './reader.ts'
import { joinPath } from './repository-path.ts'
import { readSource, type Source } from './source.ts'

/** What an application may reach outside of its own releases; nothing unless named. */
export interface Allow {
  hostPaths: readonly string[]
  secrets: readonly string[]
  configs: readonly string[]
  volumes: readonly string[]
  networks: readonly string[]
}

export interface SyncPolicy {
  /** False: changes are planned and shown, and wait for a person. */
  automated: boolean
  intervalMs: number
  /** Whether an apply waits until what it wrote is healthy. */
  wait: boolean
  timeoutMs: number
  /** Revisions kept of a release; 0: all. */
  historyMax: number
  prune: boolean
  pruneVolumes: boolean
  pruneResources: boolean
  pruneFirst: boolean
}

export interface Application {
  name: string
  source: Source
  allow: Allow
  syncPolicy: SyncPolicy
  driftDetection: 'manifest' | 'live'
}

export interface AppSet {
  applications: readonly Application[]
}

export type AppSetResult = { ok: true; appSet: AppSet } | { ok: false; faults: Fault[] }

const notYet = 'not supported yet'
const longestName = 63
const day = 86_400_000
const allowed = ['hostPaths', 'secrets', 'configs', 'volumes', 'networks'] as const

/** Every fault is found, not only the first. `applications: []` is a set (prune R18); a missing or null list is none. */
export const readAppSet = (document: Document): AppSetResult => {
  const reader = readerOf(document)
  const applications: Application[] = []
  if (mapping(reader, [], ['apiVersion', 'applications'])) {
    const version = text(reader, ['apiVersion'])
    if (version !== undefined && version !== 'v1') blame(reader, ['apiVersion'], `apiVersion is "${version}"`, 'Write v1, or leave it out')
    const list = listAt(reader, ['applications'], 'Write "applications: []" if there shall be none')
    const seen = new Map<string, number>()
    for (const index of (list ?? []).keys()) {
      const application = readApplication(reader, index)
      if (!application) continue
      if (seen.has(application.name)) {
        blame(reader, ['applications', index, 'name'], `there is an application "${application.name}" already`, 'Names must differ')
      }
      seen.set(application.name, index)
      applications.push(application)
    }
  }
  return reader.faults.length > 0 ? { ok: false, faults: reader.faults } : { ok: true, appSet: { applications } }
}

const readApplication = (reader: Reader, index: number): Application | null => {
  const path = ['applications', index]
  const keys = ['name', 'allow', 'source', 'destination', 'syncPolicy', 'driftDetection']
  const found = mapping(reader, path, keys, { registryAuth: notYet, self: notYet })
  if (!found) return null
  const name = text(reader, [...path, 'name'], 'Give the application a name')
  if (name !== undefined && (!applicationName.test(name) || name.length > longestName)) {
    const fix = `Use lower-case letters, digits, ".", "_" and "-", beginning with a letter or digit, at most ${longestName}`
    blame(reader, [...path, 'name'], `"${name}" is no name for an application`, fix)
  }
  const source = readSource(reader, [...path, 'source'])
  readDestination(reader, index)
  const allow = readAllow(reader, index)
  const syncPolicy = readPolicy(reader, index)
  const driftDetection = oneOf(reader, [...path, 'driftDetection'], ['manifest', 'live'], 'manifest')
  return name === undefined || source === null ? null : { name, source, allow, syncPolicy, driftDetection }
}

/** Whether there is a mapping; missing and null are none, and no fault. */
const optional = (reader: Reader, path: Path, keys: readonly string[]): boolean => {
  const value = valueAt(reader.document.value, path)
  return value !== undefined && value !== null && mapping(reader, path, keys) !== null
}

/** One Swarm: another than the one that this installation talks to can't be named yet. */
const readDestination = (reader: Reader, index: number): void => {
  const path = ['applications', index, 'destination']
  if (!optional(reader, path, ['swarm'])) return
  const swarm = text(reader, [...path, 'swarm'])
  if (swarm !== undefined && swarm !== '')
    blame(reader, [...path, 'swarm'], `the Swarm "${swarm}" is not known`, 'Write "" or leave it out')
}

const readAllow = (reader: Reader, index: number): Allow => {
  const path = ['applications', index, 'allow']
  const given = optional(reader, path, allowed)
  const list = (key: (typeof allowed)[number]): string[] => (given ? texts(reader, [...path, key]) : [])
  const hostPaths = list('hostPaths')
  for (const [at, one] of hostPaths.entries()) {
    if (one.startsWith('/') && joinPath('', one.slice(1)) !== null && !one.split('/').includes('..')) continue
    blame(reader, [...path, 'hostPaths', at], `"${one}" is no absolute path`, 'Write a path that begins with / and has no ".." in it')
  }
  return { hostPaths, secrets: list('secrets'), configs: list('configs'), volumes: list('volumes'), networks: list('networks') }
}

const readPolicy = (reader: Reader, index: number): SyncPolicy => {
  const path = ['applications', index, 'syncPolicy']
  const at = (key: string): (string | number)[] => [...path, key]
  const keys = ['automated', 'interval', 'wait', 'timeout', 'historyMax', 'prune', 'pruneVolumes', 'pruneResources', 'pruneFirst']
  optional(reader, path, keys)
  const policy: SyncPolicy = {
    automated: flag(reader, at('automated'), false),
    intervalMs: duration(reader, at('interval'), { leastMs: 10_000, mostMs: day, otherwiseMs: 180_000 }),
    wait: flag(reader, at('wait'), false),
    timeoutMs: duration(reader, at('timeout'), { leastMs: 1000, mostMs: day, otherwiseMs: 300_000 }),
    historyMax: whole(reader, at('historyMax'), { least: 0, most: 1000, otherwise: 10 }),
    prune: flag(reader, at('prune'), false),
    pruneVolumes: flag(reader, at('pruneVolumes'), false),
    pruneResources: flag(reader, at('pruneResources'), false),
    pruneFirst: flag(reader, at('pruneFirst'), false),
  }
  if (policy.pruneVolumes && !policy.prune) blame(reader, at('pruneVolumes'), 'pruneVolumes needs prune', 'Add prune: true, or take it out')
  if (policy.pruneFirst && !policy.prune && !policy.pruneResources) {
    blame(reader, at('pruneFirst'), 'pruneFirst needs prune or pruneResources', 'Add one of them, or take it out')
  }
  return policy
}
