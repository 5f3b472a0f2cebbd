/** Objects of a Swarm in the form that the Engine's API takes for their creation. Networks, configs and secrets are named; whoever sends them adds ids. */

export type Labels = Record<string, string>

export interface Mount {
  Type: 'volume' | 'bind' | 'tmpfs'
  Source?: string
  Target: string
  ReadOnly?: boolean
  BindOptions?: { Propagation: string }
  VolumeOptions?: { NoCopy?: boolean; Labels?: Labels; DriverConfig?: { Name?: string; Options?: Labels } }
  TmpfsOptions?: { SizeBytes: number }
}

export interface FileReference {
  File: { Name: string; UID: string; GID: string; Mode: number }
}
export interface SecretReference extends FileReference {
  SecretName: string
}
export interface ConfigReference extends FileReference {
  ConfigName: string
}

export interface UpdateConfig {
  Parallelism: number
  Delay?: number
  FailureAction?: string
  Monitor?: number
  MaxFailureRatio: number
  Order?: string
}

export interface ContainerSpec {
  Image: string
  Labels: Labels
  Command?: string[]
  Args?: string[]
  Hostname?: string
  Env?: string[]
  Dir?: string
  User?: string
  TTY?: boolean
  OpenStdin?: boolean
  ReadOnly?: boolean
  Init?: boolean
  Isolation?: string
  StopSignal?: string
  StopGracePeriod?: number
  Hosts?: string[]
  DNSConfig?: { Nameservers?: string[]; Search?: string[] }
  Healthcheck?: { Test?: string[]; Interval?: number; Timeout?: number; StartPeriod?: number; Retries?: number }
  Mounts?: Mount[]
  Secrets?: SecretReference[]
  Configs?: ConfigReference[]
  Sysctls?: Labels
  CapabilityAdd?: string[]
  CapabilityDrop?: string[]
  Ulimits?: { Name: string; Soft: number; Hard: number }[]
  Privileges?: Record<never, never>
}

export interface PortConfig {
  Protocol: string
  TargetPort: number
  PublishedPort?: number
  PublishMode: string
}

export interface ServiceMode {
  Replicated?: { Replicas?: number }
  Global?: Record<never, never>
  ReplicatedJob?: { MaxConcurrent?: number; TotalCompletions?: number }
  GlobalJob?: Record<never, never>
}

export interface Resources {
  Limits?: { NanoCPUs?: number; MemoryBytes?: number; Pids?: number }
  Reservations?: { NanoCPUs?: number; MemoryBytes?: number; GenericResources?: { DiscreteResourceSpec: { Kind: string; Value: number } }[] }
}

export interface ServiceSpec {
  Name: string
  Labels: Labels
  TaskTemplate: {
    ContainerSpec: ContainerSpec
    Resources?: Resources
    RestartPolicy?: { Condition?: string; Delay?: number; MaxAttempts?: number; Window?: number }
    Placement?: { Constraints?: string[]; Preferences?: { Spread: { SpreadDescriptor: string } }[]; MaxReplicas?: number }
    Networks: { Target: string; Aliases?: string[] }[]
    LogDriver?: { Name?: string; Options?: Labels }
  }
  Mode: ServiceMode
  UpdateConfig?: UpdateConfig
  RollbackConfig?: UpdateConfig
  EndpointSpec: { Mode?: string; Ports?: PortConfig[] }
}

export interface NetworkSpec {
  Name: string
  Driver: string
  Options?: Labels
  Internal: boolean
  Attachable: boolean
  Labels: Labels
  IPAM?: { Driver?: string; Config?: { Subnet: string }[] }
}

/** The content of a secret or config. It shows in no text and no JSON: only `reveal` gives it out, to the call that creates the object. */
export interface Content {
  reveal(): Uint8Array
  readonly bytes: number
  toJSON(): string
}

export interface FileObjectSpec {
  Name: string
  Labels: Labels
  Data: Content
  Driver?: { Name: string; Options?: Labels }
  Templating?: { Name: string }
}

/** A volume is made by the node that first needs it, from what the mount says. */
export interface VolumeUse {
  Name: string
  Labels: Labels
  services: string[]
}

/** What is used and not made here. */
export interface External {
  networks: string[]
  configs: string[]
  secrets: string[]
  volumes: string[]
}

/** All that a release declares, by name. */
export interface ReleaseObjects {
  release: string
  services: ServiceSpec[]
  networks: NetworkSpec[]
  configs: FileObjectSpec[]
  secrets: FileObjectSpec[]
  volumes: VolumeUse[]
  external: External
}

export const contentOf = (data: Uint8Array): Content => ({
  reveal: () => data,
  bytes: data.byteLength,
  toJSON: () => `*** ${data.byteLength} bytes ***`,
})
