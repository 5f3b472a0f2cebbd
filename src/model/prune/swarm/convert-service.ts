/** One service, as `docker stack deploy` would create it. */
import type { Path } from '../document.ts'
import { byText, compact } from '../compose/shapes.ts'
import type { Compose, DeployDef, FileRef, HealthCheckDef, Port, Problem, ServiceDef, UpdateDef } from '../compose/types.ts'
import { convertMounts } from './convert-mounts.ts'
import { scopedName } from '../names.ts'
import { imageLabel, namespaceLabel, stamped, type Stamp } from './stamp.ts'
import type { ContainerSpec, FileReference, PortConfig, Resources, ServiceMode, ServiceSpec, UpdateConfig } from './types.ts'

export interface ServiceInput {
  name: string
  release: string
  compose: Compose
  stamp: Stamp | null
  problems: Problem[]
}

export const convertService = (input: ServiceInput): ServiceSpec => {
  const { name, release, compose, stamp, problems } = input
  const service = compose.services[name] as ServiceDef
  const blame = (path: Path, message: string, fix: string | null = null): void =>
    void problems.push({ path: ['services', name, ...path], message, fix, of: 'key' })
  if (service.image === undefined || service.image === '') blame([], `the service ${name} has no image`, 'Name one')
  const deploy = service.deploy ?? {}
  const scoped = scopedName(release, name, undefined)
  const task: ServiceSpec['TaskTemplate'] = {
    ContainerSpec: containerOf(input, service, blame),
    Resources: resourcesOf(deploy),
    Placement: placementOf(deploy),
    Networks: networksOf(input, service, blame),
    ...(deploy.restart_policy && { RestartPolicy: restartOf(deploy.restart_policy) }),
    ...(service.logging && {
      LogDriver: compact<{ Name?: string; Options?: Record<string, string> }>({
        Name: service.logging.driver,
        Options: service.logging.options,
      }),
    }),
  }
  return {
    Name: scoped,
    Labels: { ...stamped(deploy.labels, release, stamp, 'service', scoped), [imageLabel]: service.image ?? '' },
    TaskTemplate: task,
    Mode: modeOf(deploy, blame),
    ...(deploy.update_config && { UpdateConfig: updateOf(deploy.update_config) }),
    ...(deploy.rollback_config && { RollbackConfig: updateOf(deploy.rollback_config) }),
    EndpointSpec: compact<ServiceSpec['EndpointSpec']>({ Mode: deploy.endpoint_mode?.toLowerCase(), Ports: portsOf(service.ports ?? []) }),
  }
}

type Blame = (path: Path, message: string, fix?: string | null) => void

const containerOf = (input: ServiceInput, service: ServiceDef, blame: Blame): ContainerSpec => {
  const { release, compose } = input
  const caps = capabilities(service.cap_add ?? [], service.cap_drop ?? [])
  const secrets = referencesOf(service.secrets ?? [], 'secrets', input, blame).map(({ name, file }) => ({ ...file, SecretName: name }))
  const configs = referencesOf(service.configs ?? [], 'configs', input, blame).map(({ name, file }) => ({ ...file, ConfigName: name }))
  return compact<ContainerSpec>({
    Image: service.image ?? '',
    Labels: { ...service.labels, [namespaceLabel]: release },
    Command: service.entrypoint,
    Args: service.command,
    Hostname: service.hostname,
    Env: Object.entries(service.environment ?? {})
      .map(([name, value]) => (value === null ? name : `${name}=${value}`))
      .toSorted(byText),
    Dir: service.working_dir,
    User: service.user,
    TTY: service.tty,
    OpenStdin: service.stdin_open,
    ReadOnly: service.read_only,
    Init: service.init,
    Isolation: service.isolation,
    StopSignal: service.stop_signal,
    StopGracePeriod: service.stop_grace_period,
    Hosts: (service.extra_hosts ?? []).flatMap((one) => {
      const at = one.indexOf(':')
      return at < 0 ? [] : [`${one.slice(at + 1)} ${one.slice(0, at)}`]
    }),
    DNSConfig:
      service.dns || service.dns_search
        ? compact<NonNullable<ContainerSpec['DNSConfig']>>({ Nameservers: service.dns, Search: service.dns_search })
        : undefined,
    Healthcheck: healthOf(service.healthcheck, blame),
    Mounts: convertMounts({ mounts: service.volumes ?? [], release, volumes: compose.volumes, stamp: input.stamp, blame }),
    Secrets: secrets,
    Configs: configs,
    Sysctls: service.sysctls,
    CapabilityAdd: caps.add,
    CapabilityDrop: caps.drop,
    Ulimits: Object.entries(service.ulimits ?? {})
      .map(([name, { soft, hard }]) => ({ Name: name, Soft: soft, Hard: hard }))
      .toSorted((a, b) => byText(a.Name, b.Name)),
    Privileges: {},
  })
}

const networksOf = (input: ServiceInput, service: ServiceDef, blame: Blame): ServiceSpec['TaskTemplate']['Networks'] => {
  const { name, release, compose } = input
  const given = service.networks && Object.keys(service.networks).length > 0 ? service.networks : { default: null }
  return Object.entries(given)
    .map(([key, attachment]) => {
      const def = Object.hasOwn(compose.networks, key) ? compose.networks[key] : undefined
      if (!def && key !== 'default')
        blame(['networks', key], `there is no network "${key}"`, 'Declare it under networks, at the top of the file')
      const target = scopedName(release, key, def?.name)
      const aliases = attachment?.aliases ?? []
      // The networks that every node has by itself know no names.
      const userDefined = !['bridge', 'default', 'host', 'none', 'nat'].includes(target) && !target.startsWith('container:')
      return { Target: target, Aliases: userDefined ? [...aliases, name] : aliases }
    })
    .toSorted((a, b) => byText(a.Target, b.Target))
}

const referencesOf = (
  refs: readonly FileRef[],
  section: 'configs' | 'secrets',
  input: ServiceInput,
  blame: Blame,
): { name: string; file: FileReference }[] => {
  const targets = new Set<string>()
  return refs
    .map((ref) => {
      const def = Object.hasOwn(input.compose[section], ref.source) ? input.compose[section][ref.source] : undefined
      if (!def)
        blame([section], `there is no ${section.slice(0, -1)} "${ref.source}"`, `Declare it under ${section}, at the top of the file`)
      const target = ref.target ?? ref.source
      if (targets.has(target)) blame([section], `two ${section} would be at "${target}"`, 'Give each a target of its own')
      targets.add(target)
      const file = { File: { Name: target, UID: ref.uid ?? '0', GID: ref.gid ?? '0', Mode: ref.mode ?? 0o444 } }
      return { name: scopedName(input.release, ref.source, def?.name), file }
    })
    .toSorted((a, b) => byText(a.name, b.name))
}

const healthOf = (health: HealthCheckDef | undefined, blame: Blame): ContainerSpec['Healthcheck'] => {
  if (!health) return undefined
  if (health.disable) {
    if (health.test) blame(['healthcheck', 'disable'], 'a test that is disabled', 'Take out test or disable')
    return { Test: ['NONE'] }
  }
  return compact<NonNullable<ContainerSpec['Healthcheck']>>({
    Test: health.test,
    Interval: health.interval,
    Timeout: health.timeout,
    StartPeriod: health.start_period,
    Retries: health.retries,
  })
}

/** What is added is not dropped; ALL makes the rest of its list pointless. */
export const capabilities = (add: readonly string[], drop: readonly string[]): { add: string[]; drop: string[] } => {
  const plain = (list: readonly string[]): string[] => {
    const upper = list
      .map((one) => one.trim().toUpperCase())
      .map((one) => (one === 'ALL' || one === 'RESET' || one.startsWith('CAP_') ? one : `CAP_${one}`))
    return upper.includes('ALL') ? ['ALL'] : [...new Set(upper)].toSorted(byText)
  }
  const added = plain(add)
  return { add: added.filter((one) => one !== 'RESET'), drop: plain(drop).filter((one) => one !== 'RESET' && !added.includes(one)) }
}

const portsOf = (ports: readonly Port[]): PortConfig[] =>
  ports
    .map((one) => ({ Protocol: one.protocol, TargetPort: one.target, PublishedPort: one.published, PublishMode: one.mode }))
    .toSorted((a, b) => a.PublishedPort - b.PublishedPort || a.TargetPort - b.TargetPort || byText(a.Protocol, b.Protocol))

const modeOf = (deploy: DeployDef, blame: Blame): ServiceMode => {
  const { mode = 'replicated', replicas } = deploy
  if (mode.startsWith('global') && replicas !== undefined)
    blame(['deploy', 'replicas'], `a service of mode ${mode} has no replicas`, 'Take it out')
  const count = replicas === undefined ? {} : { Replicas: replicas }
  switch (mode) {
    case 'replicated':
      return { Replicated: count }
    case 'global':
      return { Global: {} }
    case 'replicated-job':
      return { ReplicatedJob: replicas === undefined ? {} : { MaxConcurrent: replicas, TotalCompletions: replicas } }
    case 'global-job':
      return { GlobalJob: {} }
    default:
      blame(['deploy', 'mode'], `"${mode}" is no mode`, 'Use replicated, global, replicated-job or global-job')
      return { Replicated: count }
  }
}

const restartOf = (policy: NonNullable<DeployDef['restart_policy']>): NonNullable<ServiceSpec['TaskTemplate']['RestartPolicy']> =>
  compact<NonNullable<ServiceSpec['TaskTemplate']['RestartPolicy']>>({
    Condition: policy.condition,
    Delay: policy.delay,
    MaxAttempts: policy.max_attempts,
    Window: policy.window,
  })

const updateOf = (update: UpdateDef): UpdateConfig =>
  compact<UpdateConfig>({
    Parallelism: update.parallelism ?? 1,
    Delay: update.delay,
    FailureAction: update.failure_action,
    Monitor: update.monitor,
    MaxFailureRatio: update.max_failure_ratio ?? 0,
    Order: update.order,
  })

const placementOf = (deploy: DeployDef): NonNullable<ServiceSpec['TaskTemplate']['Placement']> =>
  compact<NonNullable<ServiceSpec['TaskTemplate']['Placement']>>({
    Constraints: deploy.placement?.constraints,
    Preferences: deploy.placement?.preferences?.map((one) => ({ Spread: { SpreadDescriptor: one } })),
    MaxReplicas: deploy.placement?.max_replicas_per_node,
  })

const resourcesOf = ({ resources }: DeployDef): Resources =>
  compact<Resources>({
    Limits:
      resources?.limits &&
      compact<NonNullable<Resources['Limits']>>({
        NanoCPUs: resources.limits.cpus,
        MemoryBytes: resources.limits.memory,
        Pids: resources.limits.pids,
      }),
    Reservations:
      resources?.reservations &&
      compact<NonNullable<Resources['Reservations']>>({
        NanoCPUs: resources.reservations.cpus,
        MemoryBytes: resources.reservations.memory,
        GenericResources: resources.reservations.generic_resources?.map((one) => ({
          DiscreteResourceSpec: { Kind: one.kind, Value: one.value },
        })),
      }),
  })
