/**
 * What Compose files say, with every short form written out. Absent, in all of it: not said. Durations are nanoseconds, sizes bytes, as the Engine
 * has them.
 */
export interface Port {
  target: number
  /** 0: the Swarm picks one. */
  published: number
  protocol: string
  mode: string
}

/** One entry of a service's `volumes`. */
export interface MountDef {
  type: 'volume' | 'bind' | 'tmpfs'
  source?: string
  target: string
  readOnly?: boolean
  propagation?: string
  nocopy?: boolean
  tmpfsBytes?: number
}

/** One entry of a service's `configs` or `secrets`. */
export interface FileRef {
  source: string
  target?: string
  uid?: string
  gid?: string
  mode?: number
}

export interface HealthCheckDef {
  test?: string[]
  interval?: number
  timeout?: number
  start_period?: number
  retries?: number
  disable?: boolean
}

export interface UpdateDef {
  parallelism?: number
  delay?: number
  failure_action?: string
  monitor?: number
  max_failure_ratio?: number
  order?: string
}

export interface DeployDef {
  mode?: string
  replicas?: number
  endpoint_mode?: string
  labels?: Record<string, string>
  update_config?: UpdateDef
  rollback_config?: UpdateDef
  resources?: {
    limits?: { cpus?: number; memory?: number; pids?: number }
    reservations?: { cpus?: number; memory?: number; generic_resources?: { kind: string; value: number }[] }
  }
  restart_policy?: { condition?: string; delay?: number; max_attempts?: number; window?: number }
  placement?: { constraints?: string[]; preferences?: string[]; max_replicas_per_node?: number }
}

export interface ServiceDef {
  image?: string
  command?: string[]
  entrypoint?: string[]
  hostname?: string
  user?: string
  working_dir?: string
  stop_signal?: string
  stop_grace_period?: number
  isolation?: string
  tty?: boolean
  stdin_open?: boolean
  read_only?: boolean
  init?: boolean
  /** Null: named without a value. */
  environment?: Record<string, string | null>
  labels?: Record<string, string>
  sysctls?: Record<string, string>
  /** `host:address`. */
  extra_hosts?: string[]
  dns?: string[]
  dns_search?: string[]
  cap_add?: string[]
  cap_drop?: string[]
  healthcheck?: HealthCheckDef
  logging?: { driver?: string; options?: Record<string, string> }
  /** Null: only named, so that an override leaves the aliases as they are. */
  networks?: Record<string, { aliases: string[] } | null>
  ports?: Port[]
  volumes?: MountDef[]
  configs?: FileRef[]
  secrets?: FileRef[]
  ulimits?: Record<string, { soft: number; hard: number }>
  deploy?: DeployDef
}

export interface NetworkDef {
  /** Its name as it is, without the release before it. */
  name?: string
  external: boolean
  driver?: string
  driver_opts?: Record<string, string>
  ipam?: { driver?: string; subnets: string[] }
  internal?: boolean
  attachable?: boolean
  labels?: Record<string, string>
}

export interface VolumeDef {
  name?: string
  external: boolean
  driver?: string
  driver_opts?: Record<string, string>
  labels?: Record<string, string>
}

/** A top-level config or secret. */
export interface FileObjectDef {
  name?: string
  external: boolean
  /** As written: from the folder of the first Compose file. */
  file?: string
  driver?: string
  driver_opts?: Record<string, string>
  template_driver?: string
  labels?: Record<string, string>
}

export interface Compose {
  services: Record<string, ServiceDef>
  networks: Record<string, NetworkDef>
  volumes: Record<string, VolumeDef>
  configs: Record<string, FileObjectDef>
  secrets: Record<string, FileObjectDef>
}

/** What is wrong at a path of one Compose file, or of all together. */
export interface Problem {
  path: readonly (string | number)[]
  message: string
  fix: string | null
  /** Whether its key is to be shown rather than its value. */
  of?: 'key'
}
