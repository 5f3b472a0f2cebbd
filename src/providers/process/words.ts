/** Names that a box's processes, files and identities are written in. */

/** The tags, in a process's environment. */
export const tag = {
  ref: 'LEASEHOLD_REF',
  installation: 'LEASEHOLD_INSTALLATION',
  attempt: 'LEASEHOLD_ATTEMPT',
  mac: 'LEASEHOLD_MAC',
  lease: 'LEASEHOLD_LEASE_ID',
} as const

export const providerName = 'process'
export const ownerKind = 'box'
export const localLocation = 'local'

/** How a box is held together: by a PID namespace, or, where none can be made, by the sessions that were recorded. */
export type BoxMode = 'namespace' | 'session'

/** `Error.code` of a Node error. */
export const errorCode = (error: unknown): string | undefined => (error as NodeJS.ErrnoException | null)?.code

/** One line of what went wrong. */
export const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error))
