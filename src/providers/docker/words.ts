/** Names that a box's container, volume and network are written with. */
import type { FoundResource } from '../contract.ts'

export const providerName = 'docker'
export const ownerKind = 'box'
/** An Engine has no regions: one place for all. */
export const engineLocation = 'engine'

/** The tags, as labels. An Engine changes no label of what is made already. */
export const tag = {
  ref: 'leasehold.ref',
  installation: 'leasehold.installation',
  attempt: 'leasehold.attempt',
  mac: 'leasehold.mac',
} as const

/** What else of a box must be known without its backend's configuration, which may have changed since. */
export const note = {
  /** The name for people. */
  name: 'leasehold.name',
  /** The id of the box's network, on its volume and container: what makes the box itself. */
  network: 'leasehold.network',
  /** Where the volume is mounted. */
  folder: 'leasehold.folder',
  /** The user that commands run as; empty: the image says none, so root. */
  user: 'leasehold.user',
} as const

/** In memory, and gone with the container: what a commit or an export of the container must not hold. */
export const privateFolder = '/.leasehold'

/** The Engine's words for the state of a container, and one of ours for a box without one (orphans U10). */
export const states = {
  running: 'exists',
  paused: 'exists',
  restarting: 'exists',
  /** Made and never started: half a box. */
  created: 'going',
  exited: 'going',
  removing: 'going',
  dead: 'going',
  /** Network or volume are left, and no container. */
  remains: 'going',
} as const satisfies Record<string, FoundResource['existence']>
export type BoxState = keyof typeof states
export const isBoxState = (text: string): text is BoxState => Object.hasOwn(states, text)

/** One line of what went wrong. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error))
