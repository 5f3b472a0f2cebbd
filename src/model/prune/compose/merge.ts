/**
 * Several Compose files as one, by the rules of `docker stack deploy`: maps join, lists append, ports, mounts, configs and secrets replace what is
 * at the same place, a command replaces, and what stands at the top (networks, volumes, configs, secrets) replaces as a whole. Where that command
 * drops an override without a word, or versions of it differ, the override is refused.
 */
import { byText, compact } from './shapes.ts'
import type { Compose, FileRef, MountDef, Port, Problem, ServiceDef } from './types.ts'

export interface MergeProblem extends Problem {
  /** Of the file whose override it is, in the order given. */
  file: number
}

export const mergeCompose = (files: readonly Compose[]): { compose: Compose; problems: MergeProblem[] } => {
  const problems: MergeProblem[] = []
  const compose: Compose = { services: {}, networks: {}, volumes: {}, configs: {}, secrets: {} }
  for (const [file, one] of files.entries()) {
    Object.assign(compose.networks, one.networks)
    Object.assign(compose.volumes, one.volumes)
    Object.assign(compose.configs, one.configs)
    Object.assign(compose.secrets, one.secrets)
    for (const [name, over] of Object.entries(one.services)) {
      const base = Object.hasOwn(compose.services, name) ? compose.services[name] : undefined
      const blame: Blame = (path, message, fix) => void problems.push({ file, path: ['services', name, ...path], message, fix })
      compose.services[name] = base === undefined ? over : mergeService(base, over, blame)
    }
  }
  return { compose, problems }
}

type Blame = (path: (string | number)[], message: string, fix: string) => void
type Plain = Record<string, unknown>

/** Set also by 0, as `docker stack deploy` sets them. */
const zeroCounts: ReadonlySet<string> = new Set(['replicas', 'parallelism', 'retries', 'max_attempts'])
/** Maps of texts, in which an empty text is one like any other. */
const textMaps: ReadonlySet<string> = new Set(['labels', 'sysctls', 'options', 'ulimits'])

const mergeService = (base: ServiceDef, over: ServiceDef, blame: Blame): ServiceDef => {
  if (base.healthcheck?.test && over.healthcheck?.test) {
    blame(['healthcheck', 'test'], 'docker stack deploy joins both tests to one command', 'Give the test in one of the files')
  }
  const taken = ['command', 'entrypoint', 'ports', 'volumes', 'configs', 'secrets', 'networks', 'logging', 'environment'] as const
  const rest = mergePlain(without(base, taken), without(over, taken), [], blame) as ServiceDef
  const replaced = (a: string[] | undefined, b: string[] | undefined): string[] | undefined => (b !== undefined && b.length > 0 ? b : a)
  return compact<ServiceDef>({
    ...rest,
    command: replaced(base.command, over.command),
    entrypoint: replaced(base.entrypoint, over.entrypoint),
    environment: joined(base.environment, over.environment, (a, b) => mergeEnvironment(a, b, blame)),
    networks: joined(base.networks, over.networks, (a, b) =>
      Object.fromEntries(Object.keys({ ...a, ...b }).map((name) => [name, b[name] ?? a[name] ?? null])),
    ),
    logging: joined(base.logging, over.logging, mergeLogging),
    ports: joined(base.ports, over.ports, (a, b) => byKey([...a, ...b], portKey, (x, y) => x.published - y.published)),
    volumes: joined(base.volumes, over.volumes, (a, b) => byKey([...a, ...b], mountKey, (x, y) => byText(x.target, y.target))),
    configs: joined(base.configs, over.configs, mergeRefs),
    secrets: joined(base.secrets, over.secrets, mergeRefs),
  })
}

const without = (value: object, keys: readonly string[]): Plain =>
  Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)))

const joined = <T>(base: T | undefined, over: T | undefined, both: (base: T, over: T) => T): T | undefined =>
  base === undefined || over === undefined ? (over ?? base) : both(base, over)

const byKey = <T>(all: readonly T[], key: (one: T) => string, order: (a: T, b: T) => number): T[] =>
  [...new Map(all.map((one) => [key(one), one])).values()].toSorted(order)

/** Two on one published port of one protocol could never both be, so the later one stands. */
const portKey = (one: Port): string => `${one.published === 0 ? `to ${one.target}` : one.published}/${one.protocol}`
const mountKey = (one: MountDef): string => one.target
const mergeRefs = (base: readonly FileRef[], over: readonly FileRef[]): FileRef[] =>
  byKey(
    [...base, ...over],
    (one) => one.source,
    (a, b) => byText(a.source, b.source),
  )

/** Another driver brings its own options. */
const mergeLogging = (
  base: NonNullable<ServiceDef['logging']>,
  over: NonNullable<ServiceDef['logging']>,
): NonNullable<ServiceDef['logging']> =>
  base.driver !== undefined && over.driver !== undefined && base.driver !== over.driver
    ? over
    : compact<NonNullable<ServiceDef['logging']>>({
        driver: over.driver ?? base.driver,
        options: base.options || over.options ? { ...base.options, ...over.options } : undefined,
      })

type Environment = NonNullable<ServiceDef['environment']>

const mergeEnvironment = (base: Environment, over: Environment, blame: Blame): Environment => {
  const result = { ...base }
  for (const [name, value] of Object.entries(over)) {
    const before = Object.hasOwn(base, name) ? base[name] : undefined
    if ((value === null || value === '') && before !== undefined && before !== null && before !== '') dropped(['environment', name], blame)
    else result[name] = value
  }
  return result
}

const dropped = (path: (string | number)[], blame: Blame): void =>
  blame(
    path,
    'docker stack deploy keeps what an earlier file says where a later one gives an empty value',
    'Take it out here, or out of the earlier file',
  )

const isEmpty = (value: unknown): boolean => value === '' || value === 0 || value === false

const mergePlain = (base: Plain, over: Plain, path: (string | number)[], blame: Blame): Plain => {
  const result: Plain = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const before = Object.hasOwn(base, key) ? base[key] : undefined
    const at = [...path, key]
    if (before === undefined) result[key] = value
    else if (Array.isArray(before) && Array.isArray(value)) result[key] = [...(before as unknown[]), ...(value as unknown[])]
    else if (isPlain(before) && isPlain(value))
      result[key] = textMaps.has(key) ? { ...before, ...value } : mergePlain(before, value, at, blame)
    else if (!isEmpty(value) || isEmpty(before) || zeroCounts.has(key)) result[key] = value
    else dropped(at, blame)
  }
  return result
}

const isPlain = (value: unknown): value is Plain => typeof value === 'object' && value !== null && !Array.isArray(value)
