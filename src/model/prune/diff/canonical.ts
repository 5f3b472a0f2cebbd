/**
 * One form for a service that is wanted and for one that an Engine tells of: names instead of ids, the Engine's defaults written out, what has no
 * order sorted, what is empty left out. Two that mean the same are the same in it.
 */
import { byText } from '../compose/shapes.ts'
import { isMap, type Json, type JsonMap } from '../document.ts'

const second = 1_000_000_000
const updateDefaults: JsonMap = {
  Parallelism: 1,
  Delay: 0,
  FailureAction: 'pause',
  Monitor: 5 * second,
  MaxFailureRatio: 0,
  Order: 'stop-first',
}
const restartDefaults: JsonMap = { Condition: 'any', Delay: 5 * second, MaxAttempts: 0 }
/** What an Engine counts or adds by itself. */
const notOurs: ReadonlySet<string> = new Set(['ForceUpdate', 'Runtime'])

/** `networkName` gives the name of a network's id; what it does not know stays as it is. */
export const canonicalService = (spec: JsonMap, networkName: (id: string) => string): JsonMap => {
  const task = mapOf(spec['TaskTemplate'])
  const container = mapOf(task['ContainerSpec'])
  const endpoint = mapOf(spec['EndpointSpec'])
  return tidy({
    Labels: spec['Labels'] ?? {},
    TaskTemplate: {
      ...Object.fromEntries(Object.entries(task).filter(([key]) => !notOurs.has(key))),
      ContainerSpec: {
        StopGracePeriod: 10 * second,
        Isolation: 'default',
        ...container,
        Env: envOf(container['Env']),
        Mounts: keyed(container['Mounts'], (one) => textOf(one['Target'])),
        Secrets: keyed(container['Secrets'], (one) => textOf(mapOf(one['File'])['Name']), ['SecretID']),
        Configs: keyed(container['Configs'], (one) => textOf(mapOf(one['File'])['Name']), ['ConfigID']),
        Ulimits: keyed(container['Ulimits'], (one) => textOf(one['Name']), ['Name']),
        CapabilityAdd: sorted(container['CapabilityAdd']),
        CapabilityDrop: sorted(container['CapabilityDrop']),
      },
      RestartPolicy: { ...restartDefaults, ...mapOf(task['RestartPolicy']) },
      Networks: keyed(task['Networks'], (one) => networkName(textOf(one['Target'])), ['Target']),
    },
    Mode: modeOf(mapOf(spec['Mode'])),
    UpdateConfig: { ...updateDefaults, ...mapOf(spec['UpdateConfig']) },
    RollbackConfig: { ...updateDefaults, ...mapOf(spec['RollbackConfig']) },
    EndpointSpec: { Mode: 'vip', ...endpoint, Ports: portsOf(endpoint['Ports']) },
  }) as JsonMap
}

const mapOf = (value: Json | undefined): JsonMap => (isMap(value) ? value : {})
const listOf = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : [])
const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
const sorted = (value: Json | undefined): Json => listOf(value).map(textOf).toSorted(byText)

const envOf = (value: Json | undefined): JsonMap =>
  Object.fromEntries(
    listOf(value).map((one) => {
      const text = textOf(one)
      const at = text.indexOf('=')
      return at < 0 ? [text, '(taken from the node)'] : [text.slice(0, at), `=${text.slice(at + 1)}`]
    }),
  )

const keyed = (value: Json | undefined, key: (one: JsonMap) => string, without: readonly string[] = []): JsonMap =>
  Object.fromEntries(
    listOf(value).map((one) => {
      const map = mapOf(one)
      const rest = Object.fromEntries(Object.entries(map).filter(([name]) => !without.includes(name)))
      return [key(map), { ...rest, ...(Array.isArray(rest['Aliases']) && { Aliases: sorted(rest['Aliases']) }), there: true }]
    }),
  )

const portsOf = (value: Json | undefined): JsonMap =>
  Object.fromEntries(
    listOf(value).map((one) => {
      const { Protocol = 'tcp', TargetPort = 0, PublishedPort = 0, PublishMode = 'ingress' } = mapOf(one)
      const published = PublishedPort === 0 ? 'any' : JSON.stringify(PublishedPort)
      return [`${published}:${JSON.stringify(TargetPort)}/${textOf(Protocol)}`, textOf(PublishMode)]
    }),
  )

const modeOf = (mode: JsonMap): JsonMap => {
  const [name = 'Replicated'] = Object.keys(mode).filter((key) => mode[key] !== null)
  const given = mapOf(mode[name])
  return { kind: name, ...(name === 'Replicated' ? { Replicas: 1, ...given } : given) }
}

/** Without what says nothing: null, false, 0, "", [] and {}; in maps of texts, "" says something. */
const tidy = (value: Json, key = ''): Json | undefined => {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map((one) => tidy(one) ?? one)
  if (isMap(value)) {
    const texts = key === 'Labels' || key === 'Options' || key === 'Env' || key === 'Sysctls'
    const entries = Object.entries(value).flatMap(([name, one]) => {
      const clean = texts ? one : tidy(one, name)
      return clean === undefined || clean === null ? [] : [[name, clean] as const]
    })
    return entries.length === 0 ? undefined : Object.fromEntries(entries)
  }
  return value === null || value === false || value === 0 || value === '' ? undefined : value
}
