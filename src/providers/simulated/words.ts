/** Names and tables of the simulated cloud. */

export const providerName = 'simulated'

/** The owner's kind first. */
export const kinds = ['machine', 'disk', 'nic', 'ip'] as const
export type Kind = (typeof kinds)[number]
export const ownerKind: Kind = 'machine'
export const isKind = (text: string): text is Kind => kinds.some((kind) => kind === text)

export const idPrefix: Record<Kind, string> = { machine: 'i', disk: 'd', nic: 'n', ip: 'ip' }

export const defaultLocations = ['sim-a', 'sim-b'] as const

/** The tags (decisions, Names). */
export const tag = {
  ref: 'leasehold_ref',
  installation: 'leasehold_installation',
  attempt: 'leasehold_attempt',
  mac: 'leasehold_mac',
} as const

/**
 * The state table: the cloud's word for a state, and ours (orphans U10). What is `going` still takes room and may cost; what is `gone` never comes back,
 * and is listed for as long as `terminatedSeconds` says.
 */
export const states = {
  pending: 'exists',
  running: 'exists',
  stopped: 'exists',
  terminating: 'going',
  terminated: 'gone',
  available: 'exists',
  attached: 'exists',
  deleting: 'going',
  deleted: 'gone',
} as const
export type State = keyof typeof states

export const operations = ['create', 'list', 'get', 'delete', 'wipe'] as const
export type Operation = (typeof operations)[number]

/** The permission that a call needs, as a denied one names it. */
export const permissionOf = (operation: Operation, kind: Kind | null): string => `simulated:${operation}${kind === null ? '' : `:${kind}`}`
