/**
 * From merged Compose files to the objects of a Swarm: what `docker stack deploy` would create, object by object, with the stamp on each. What that
 * command would find wrong only half-way is found here, before any change.
 */
import type { Path } from '../document.ts'
import { caseTwins, nameProblem, scopedName, type SwarmKind } from '../names.ts'
import { byText, compact } from '../compose/shapes.ts'
import type { Compose, FileObjectDef, Problem, VolumeDef } from '../compose/types.ts'
import { convertService } from './convert-service.ts'
import { isReserved, stamped, type Stamp } from './stamp.ts'
import {
  contentOf,
  type External,
  type FileObjectSpec,
  type Labels,
  type NetworkSpec,
  type ReleaseObjects,
  type VolumeUse,
} from './types.ts'

export interface ConvertInput {
  release: string
  compose: Compose
  stamp: Stamp | null
  /** The content of a file as written at a config or secret; undefined: it could not be read, which is said elsewhere. */
  content: (file: string) => Uint8Array | undefined
}

export const convertRelease = (input: ConvertInput): { objects: ReleaseObjects; problems: Problem[] } => {
  const { release, compose, stamp } = input
  const problems: Problem[] = []
  const blame = (path: Path, message: string, fix: string | null = null): void => void problems.push({ path, message, fix, of: 'key' })
  const services = Object.keys(compose.services).toSorted(byText)
  if (services.length === 0) blame(['services'], 'there is no service', 'Declare at least one')
  const external: External = { networks: [], configs: [], secrets: [], volumes: [] }
  const objects: ReleaseObjects = {
    release,
    services: services.map((name) => convertService({ name, release, compose, stamp, problems })),
    networks: networksOf(input, external),
    configs: fileObjects(input, 'config', external, blame),
    secrets: fileObjects(input, 'secret', external, blame),
    volumes: volumesOf(input, external),
    external,
  }
  checkLabels(compose, blame)
  checkNames(objects, compose, blame)
  return { objects, problems }
}

type Blame = (path: Path, message: string, fix?: string | null) => void

const ownOf = <T>(record: Record<string, T>, key: string): T | undefined => (Object.hasOwn(record, key) ? record[key] : undefined)

/** Only those that a service is in are made; a service that names none is in `default`. */
const networksOf = ({ release, compose, stamp }: ConvertInput, external: External): NetworkSpec[] => {
  const used = new Set(
    Object.values(compose.services).flatMap((one) =>
      one.networks && Object.keys(one.networks).length > 0 ? Object.keys(one.networks) : ['default'],
    ),
  )
  return [...used].toSorted(byText).flatMap((key) => {
    const def = ownOf(compose.networks, key) ?? { external: false }
    const name = scopedName(release, key, def.name)
    if (def.external) {
      external.networks.push(name)
      return []
    }
    const ipam = def.ipam
    return compact<NetworkSpec>({
      Name: name,
      Driver: def.driver ?? 'overlay',
      Options: def.driver_opts,
      Internal: def.internal ?? false,
      Attachable: def.attachable ?? false,
      Labels: stamped(def.labels, release, stamp, 'network', name),
      IPAM:
        ipam && (ipam.driver !== undefined || ipam.subnets.length > 0)
          ? compact<NonNullable<NetworkSpec['IPAM']>>({ Driver: ipam.driver, Config: ipam.subnets.map((one) => ({ Subnet: one })) })
          : undefined,
    })
  })
}

/** Measured (docker facts 3.3): what an Engine takes. */
const mostBytes = { config: 500 * 1024, secret: 500 * 1024 - 1 } as const

const fileObjects = (input: ConvertInput, kind: 'config' | 'secret', external: External, blame: Blame): FileObjectSpec[] => {
  const { release, compose, stamp } = input
  const section = `${kind}s` as const
  return Object.entries(compose[section])
    .toSorted(([a], [b]) => byText(a, b))
    .flatMap(([key, def]) => {
      const name = scopedName(release, key, def.name)
      if (def.external) {
        external[section].push(name)
        return []
      }
      const data = dataOf(input, def)
      if (data === undefined) return []
      if (def.driver === undefined && (data.byteLength === 0 || data.byteLength > mostBytes[kind])) {
        blame(
          [section, key, 'file'],
          `the file of ${key} has ${data.byteLength} bytes`,
          `A Swarm takes a ${kind} of 1 to ${mostBytes[kind]} bytes`,
        )
      }
      return compact<FileObjectSpec>({
        Name: name,
        Labels: stamped(def.labels, release, stamp, kind, name),
        Data: contentOf(data),
        Driver:
          def.driver === undefined
            ? undefined
            : compact<{ Name: string; Options?: Labels }>({ Name: def.driver, Options: def.driver_opts }),
        Templating: def.template_driver === undefined ? undefined : { Name: def.template_driver },
      })
    })
}

const dataOf = (input: ConvertInput, def: FileObjectDef): Uint8Array | undefined =>
  def.driver !== undefined ? new Uint8Array() : def.file === undefined ? undefined : input.content(def.file)

const volumesOf = ({ release, compose, stamp }: ConvertInput, external: External): VolumeUse[] => {
  const found = new Map<string, VolumeUse>()
  for (const [service, { volumes }] of Object.entries(compose.services)) {
    for (const { type, source } of volumes ?? []) {
      const def: VolumeDef | undefined = type === 'volume' && source !== undefined ? ownOf(compose.volumes, source) : undefined
      if (!def || source === undefined) continue
      const name = scopedName(release, source, def.name)
      if (def.external) {
        if (!external.volumes.includes(name)) external.volumes.push(name)
        continue
      }
      const use = found.get(name) ?? { Name: name, Labels: stamped(def.labels, release, stamp, 'volume', name), services: [] }
      use.services.push(scopedName(release, service, undefined))
      found.set(name, use)
    }
  }
  return [...found.values()].toSorted((a, b) => byText(a.Name, b.Name))
}

const checkLabels = (compose: Compose, blame: Blame): void => {
  const look = (labels: Labels | undefined, path: Path): void => {
    for (const label of Object.keys(labels ?? {})) {
      if (isReserved(label)) blame([...path, label], `the label ${label} says whose a thing is, and is not for files`, 'Take it out')
    }
  }
  for (const [name, service] of Object.entries(compose.services)) {
    look(service.labels, ['services', name, 'labels'])
    look(service.deploy?.labels, ['services', name, 'deploy', 'labels'])
  }
  for (const section of ['networks', 'volumes', 'configs', 'secrets'] as const) {
    for (const [name, { labels }] of Object.entries(compose[section])) look(labels, [section, name, 'labels'])
  }
}

/** prune R79, R80: names that a Swarm would refuse half-way through. */
const checkNames = (objects: ReleaseObjects, compose: Compose, blame: Blame): void => {
  const sections = { service: 'services', network: 'networks', config: 'configs', secret: 'secrets', volume: 'volumes' } as const
  for (const [kind, section] of Object.entries(sections) as [SwarmKind, (typeof sections)[SwarmKind]][]) {
    const own: Record<string, { name?: string }> = section === 'services' ? {} : compose[section]
    const keyOf = (name: string): string =>
      Object.keys(compose[section]).find((key) => scopedName(objects.release, key, own[key]?.name) === name) ?? 'default'
    const names = objects[section].map((one) => one.Name)
    for (const name of names) {
      const problem = nameProblem(kind, name)
      if (problem) blame([section, keyOf(name)], problem, 'Choose a shorter or plainer name')
    }
    // A volume belongs to a node, and a node compares with case.
    for (const { name, twin } of kind === 'volume' ? [] : caseTwins(names)) {
      blame(
        [section, keyOf(name)],
        `the ${kind} "${name}" and "${twin}" are one to a Swarm, which compares without case`,
        'Names must differ',
      )
    }
  }
}
