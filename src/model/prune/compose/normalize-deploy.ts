/** The `deploy` of one service of one Compose file. */
import { isMap, type Json, type JsonMap } from '../document.ts'
import { compact, said, stringList, textMap } from './shapes.ts'
import type { DeployDef, Problem, UpdateDef } from './types.ts'
import { goDuration, nanoCpus, ramBytes } from './units.ts'

type At = readonly (string | number)[]

const text = (value: JsonMap, key: string): string | undefined => (typeof value[key] === 'string' ? value[key] : undefined)
const number = (value: JsonMap, key: string): number | undefined => (typeof value[key] === 'number' ? value[key] : undefined)
const time = (value: JsonMap, key: string): number | undefined =>
  typeof value[key] === 'string' ? (goDuration(value[key]) ?? undefined) : undefined
const within = (value: JsonMap, key: string): JsonMap | undefined => (isMap(value[key]) ? value[key] : undefined)

export const normalizeDeploy = (given: JsonMap, path: At, problems: Problem[]): DeployDef => {
  const restart = within(given, 'restart_policy')
  const placement = within(given, 'placement')
  const update = within(given, 'update_config')
  const rollback = within(given, 'rollback_config')
  const resources = within(given, 'resources')
  return compact<DeployDef>({
    mode: text(given, 'mode'),
    replicas: number(given, 'replicas'),
    endpoint_mode: text(given, 'endpoint_mode'),
    labels: given['labels'] === undefined || given['labels'] === null ? undefined : textMap(given['labels']),
    update_config: update && updateOf(update),
    rollback_config: rollback && updateOf(rollback),
    resources: resources && resourcesOf(resources, [...path, 'resources'], problems),
    restart_policy:
      restart &&
      compact<NonNullable<DeployDef['restart_policy']>>({
        condition: text(restart, 'condition'),
        delay: time(restart, 'delay'),
        max_attempts: number(restart, 'max_attempts'),
        window: time(restart, 'window'),
      }),
    placement:
      placement &&
      compact<NonNullable<DeployDef['placement']>>({
        constraints: placement['constraints'] === undefined ? undefined : stringList(placement['constraints']),
        preferences: Array.isArray(placement['preferences'])
          ? placement['preferences'].map((one) => (isMap(one) ? (text(one, 'spread') ?? '') : ''))
          : undefined,
        max_replicas_per_node: number(placement, 'max_replicas_per_node'),
      }),
  })
}

const updateOf = (given: JsonMap): UpdateDef =>
  compact<UpdateDef>({
    parallelism: number(given, 'parallelism'),
    delay: time(given, 'delay'),
    failure_action: text(given, 'failure_action'),
    monitor: time(given, 'monitor'),
    max_failure_ratio: number(given, 'max_failure_ratio'),
    order: text(given, 'order'),
  })

const resourcesOf = (given: JsonMap, path: At, problems: Problem[]): NonNullable<DeployDef['resources']> => {
  const limits = within(given, 'limits')
  const reservations = within(given, 'reservations')
  const generic = reservations?.['generic_resources']
  const amounts = (of: JsonMap, at: At): { cpus: number | undefined; memory: number | undefined } => ({
    cpus: amount(of['cpus'], [...at, 'cpus'], nanoCpus, 'Write a number of CPUs with at most nine decimals, such as 0.5', problems),
    memory: amount(of['memory'], [...at, 'memory'], ramBytes, 'Write a number and a unit, such as 64m or 1.5g', problems),
  })
  return compact<NonNullable<DeployDef['resources']>>({
    limits:
      limits &&
      compact<{ cpus?: number; memory?: number; pids?: number }>({ ...amounts(limits, [...path, 'limits']), pids: number(limits, 'pids') }),
    reservations:
      reservations &&
      compact<NonNullable<NonNullable<DeployDef['resources']>['reservations']>>({
        ...amounts(reservations, [...path, 'reservations']),
        generic_resources: Array.isArray(generic)
          ? generic.flatMap((one) => {
              const spec = isMap(one) ? within(one, 'discrete_resource_spec') : undefined
              return spec ? [{ kind: text(spec, 'kind') ?? '', value: number(spec, 'value') ?? 0 }] : []
            })
          : undefined,
      }),
  })
}

const amount = (
  given: Json | undefined,
  path: At,
  read: (text: string) => number | null,
  fix: string,
  problems: Problem[],
): number | undefined => {
  if (given === undefined) return undefined
  const found = read(said(given))
  if (found === null) problems.push({ path, message: `"${said(given)}" is no amount`, fix })
  return found ?? undefined
}
