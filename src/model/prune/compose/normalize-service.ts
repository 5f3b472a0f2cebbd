/** One service of one Compose file, with every short form written out. */
import { isMap, type Json, type JsonMap } from '../document.ts'
import { normalizeDeploy } from './normalize-deploy.ts'
import { parseMount } from './mounts.ts'
import type { Surroundings } from './normalize.ts'
import { parsePorts } from './ports.ts'
import { byText, compact, pairs, said, stringList, textMap } from './shapes.ts'
import { shellWords } from './shell-words.ts'
import type { FileRef, HealthCheckDef, MountDef, Port, Problem, ServiceDef } from './types.ts'
import { goDuration } from './units.ts'

type At = readonly (string | number)[]

export const normalizeService = (value: JsonMap, path: At, around: Surroundings, problems: Problem[]): ServiceDef => {
  const read = <T>(key: string, how: (given: Json, at: At) => T | undefined): T | undefined => {
    const given = value[key]
    return given === undefined || given === null ? undefined : how(given, [...path, key])
  }
  const blame = (at: At, message: string, fix: string | null = null): undefined => void problems.push({ path: at, message, fix })
  const words = (given: Json, at: At): string[] | undefined =>
    Array.isArray(given) ? given.map(said) : (shellWords(said(given)) ?? blame(at, 'a quote is not closed', 'Close it, or write a list'))
  const text = (given: Json): string => said(given)
  const flag = (given: Json): boolean => given === true
  return compact<ServiceDef>({
    image: read('image', text),
    command: read('command', words),
    entrypoint: read('entrypoint', words),
    hostname: read('hostname', text),
    user: read('user', text),
    working_dir: read('working_dir', text),
    stop_signal: read('stop_signal', text),
    stop_grace_period: read('stop_grace_period', (given) => goDuration(said(given)) ?? undefined),
    isolation: read('isolation', text),
    tty: read('tty', flag),
    stdin_open: read('stdin_open', flag),
    read_only: read('read_only', flag),
    init: read('init', flag),
    environment: environmentOf(value, around),
    labels: read('labels', textMap),
    sysctls: read('sysctls', textMap),
    extra_hosts: read('extra_hosts', hostsOf),
    dns: read('dns', stringList),
    dns_search: read('dns_search', stringList),
    cap_add: read('cap_add', stringList),
    cap_drop: read('cap_drop', stringList),
    healthcheck: read('healthcheck', (given) => healthCheckOf(given as JsonMap)),
    logging: read('logging', (given) => {
      const { driver, options } = given as JsonMap
      return compact<NonNullable<ServiceDef['logging']>>({
        driver: driver === undefined ? undefined : said(driver),
        options: options === undefined || options === null ? undefined : textMap(options),
      })
    }),
    networks: read('networks', networksOf),
    ports: read('ports', (given, at) => (given as Json[]).flatMap((one, index) => portsOf(one, [...at, index], problems))),
    volumes: read('volumes', (given, at) => (given as Json[]).flatMap((one, index) => mountOf(one, [...at, index], problems))),
    configs: read('configs', (given) => (given as Json[]).map(fileRefOf)),
    secrets: read('secrets', (given) => (given as Json[]).map(fileRefOf)),
    ulimits: read('ulimits', (given) =>
      Object.fromEntries(
        Object.entries(given as JsonMap).map(([name, one]) => [
          name,
          isMap(one) ? { soft: Number(one['soft']), hard: Number(one['hard']) } : { soft: Number(one), hard: Number(one) },
        ]),
      ),
    ),
    deploy: read('deploy', (given, at) => normalizeDeploy(given as JsonMap, at, problems)),
  })
}

/** `env_file`, then `environment`; a name without a value, or with an empty one, takes what the values files say. */
const environmentOf = (value: JsonMap, around: Surroundings): Record<string, string | null> | undefined => {
  const files = value['env_file']
  const environment = value['environment']
  if ((files ?? null) === null && (environment ?? null) === null) return undefined
  const result: Record<string, string | null> = {}
  const put = (name: string, given: string | null): void => {
    result[name] = (given === null || given === '' ? around.values.get(name) : undefined) ?? given
  }
  for (const file of files === undefined || files === null ? [] : stringList(files)) {
    for (const { name, value: given } of around.envFile(file) ?? []) {
      // A name alone, that nobody gives a value, is not passed on from a file; from `environment` it is.
      if (given !== null || around.values.has(name)) put(name, given)
    }
  }
  if (environment !== undefined && environment !== null)
    for (const [name, given] of Object.entries(pairs(environment, null))) put(name, given)
  return result
}

const hostsOf = (given: Json): string[] =>
  isMap(given)
    ? Object.entries(given)
        .flatMap(([host, address]) => (address === null ? [] : [`${host}:${said(address)}`]))
        .toSorted(byText)
    : stringList(given)

const healthCheckOf = (given: JsonMap): HealthCheckDef => {
  const time = (key: string): number | undefined => (given[key] === undefined ? undefined : (goDuration(said(given[key])) ?? undefined))
  const test = given['test']
  return compact<HealthCheckDef>({
    test: test === undefined ? undefined : Array.isArray(test) ? test.map(said) : ['CMD-SHELL', said(test)],
    interval: time('interval'),
    timeout: time('timeout'),
    start_period: time('start_period'),
    retries: typeof given['retries'] === 'number' ? given['retries'] : undefined,
    disable: given['disable'] === true ? true : undefined,
  })
}

const networksOf = (given: Json): NonNullable<ServiceDef['networks']> =>
  Object.fromEntries(
    isMap(given)
      ? Object.entries(given).map(([name, one]) => [name, isMap(one) ? { aliases: stringList(one['aliases'] ?? []) } : null])
      : stringList(given).map((name) => [name, null]),
  )

const portsOf = (given: Json, path: At, problems: Problem[]): Port[] => {
  if (isMap(given)) {
    const text = (key: string, otherwise: string): string => (typeof given[key] === 'string' ? given[key] : otherwise)
    const number = (key: string): number => (typeof given[key] === 'number' ? given[key] : 0)
    return [{ target: number('target'), published: number('published'), protocol: text('protocol', 'tcp'), mode: text('mode', 'ingress') }]
  }
  const parsed = parsePorts(said(given))
  if (parsed.ok) return parsed.ports
  problems.push({ path, message: parsed.message, fix: parsed.fix })
  return []
}

const mountOf = (given: Json, path: At, problems: Problem[]): MountDef[] => {
  if (isMap(given)) {
    const text = (key: string): string | undefined => (typeof given[key] === 'string' ? given[key] : undefined)
    const inner = (key: string, name: string): Json | undefined => (isMap(given[key]) ? given[key][name] : undefined)
    const type = text('type') ?? ''
    if (type !== 'volume' && type !== 'bind' && type !== 'tmpfs') {
      problems.push({ path: [...path, 'type'], message: `"${type}" is no type of a mount`, fix: 'Use volume, bind or tmpfs' })
      return []
    }
    const propagation = inner('bind', 'propagation')
    const size = inner('tmpfs', 'size')
    for (const other of ['bind', 'volume', 'tmpfs']) {
      if (other !== type && given[other] !== undefined) {
        problems.push({
          path: [...path, other],
          message: `${other} options are not for a mount of type ${type}`,
          fix: 'Take them out',
          of: 'key',
        })
      }
    }
    return [
      compact<MountDef>({
        type,
        source: text('source'),
        target: text('target') ?? '',
        readOnly: typeof given['read_only'] === 'boolean' ? given['read_only'] : undefined,
        propagation: typeof propagation === 'string' ? propagation : undefined,
        nocopy: inner('volume', 'nocopy') === true ? true : undefined,
        tmpfsBytes: typeof size === 'number' ? size : undefined,
      }),
    ]
  }
  const parsed = parseMount(said(given))
  if (parsed.ok) return [parsed.mount]
  problems.push({ path, message: parsed.message, fix: parsed.fix })
  return []
}

const fileRefOf = (given: Json): FileRef => {
  if (!isMap(given)) return { source: said(given) }
  const text = (key: string): string | undefined => (typeof given[key] === 'string' ? given[key] : undefined)
  return compact<FileRef>({
    source: text('source') ?? '',
    target: text('target'),
    uid: text('uid'),
    gid: text('gid'),
    mode: typeof given['mode'] === 'number' ? given['mode'] : undefined,
  })
}
