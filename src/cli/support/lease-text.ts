import { formatDuration } from '../../lib/duration.ts'
import { waitText } from '../../model/budget.ts'
import type { LeaseView } from '../../model/wire.ts'
import type { Cli } from './cli.ts'
import type { Column } from './table.ts'
import { relative, stateStyle } from './text.ts'

const terminal = new Set(['released', 'expired', 'failed'])
/** Terminal: it never becomes live again (I9); its resource may still be there. */
export const hasEnded = (lease: LeaseView): boolean => terminal.has(lease.state)

/** What is still owed of an ended lease's resource, or what goes on with it. */
const cleanupText = (lease: LeaseView): string => {
  const { state, stuck, heldBy, closedBy, mayBeLeft, leftTo } = lease.cleanup
  if (leftTo !== null) return `left to installation ${leftTo}`
  if (mayBeLeft !== null)
    return `closed by ${closedBy ?? 'somebody'}, ${mayBeLeft.length === 0 ? 'something' : mayBeLeft.join(', ')} may still be there`
  if (lease.retainedAt !== null && state === 'none') return 'retained'
  if (state === 'none') return ''
  if (state === 'wiping') return 'being wiped for its fleet'
  if (state === 'returned') return 'back in its fleet'
  return `${state}${stuck ? ' (stuck)' : ''}${heldBy === null ? '' : ` (by ${heldBy})`}`
}

/** A fork gave it to another installation: it is none of this one's, and it is not gone. */
export const isLeftToOther = (lease: LeaseView): boolean => lease.cleanup.leftTo !== null

/** Nothing of it is left to look after here: ended, and its resource is gone, there never was one, or it is another installation's. */
export const isHistory = (lease: LeaseView): boolean =>
  hasEnded(lease) &&
  (isLeftToOther(lease) ||
    lease.cleanup.state === 'gone' ||
    lease.cleanup.state === 'returned' ||
    (lease.cleanup.state === 'closed' && lease.cleanup.mayBeLeft === null) ||
    (lease.cleanup.state === 'none' && lease.retainedAt === null && lease.cloudID === null && !lease.provisioningResourceMayExist))

export const leaseColumns = (nowMs: number): Column<LeaseView>[] => [
  { title: 'ID', cell: (lease) => lease.id },
  { title: 'SLUG', cell: (lease) => lease.slug },
  { title: 'STATE', cell: (lease) => lease.state, style: (lease) => stateStyle(lease.state) },
  { title: 'CLEANUP', cell: cleanupText, style: (lease) => stateStyle(lease.cleanup.state) },
  { title: 'PROJECT', cell: (lease) => lease.project },
  { title: 'PROVIDER', cell: (lease) => lease.provider },
  { title: 'OWNER', cell: (lease) => lease.owner },
  { title: 'CREATED', cell: (lease) => relative(lease.createdAt, nowMs) },
  { title: 'ENDS', cell: (lease) => (hasEnded(lease) ? relative(lease.endedAt, nowMs) : relative(lease.expiresAt, nowMs)) },
  { title: 'KEEP', cell: (lease) => (lease.keep ? 'keep' : '') },
]

const time = (value: string | null, nowMs: number): string | null => (value === null ? null : `${value} (${relative(value, nowMs)})`)

export const describeLease = (cli: Cli, lease: LeaseView): string => {
  const now = cli.io.now()
  const { cleanup } = lease
  return cli.fields([
    ['id', lease.id],
    ['slug', lease.slug],
    ['state', lease.state],
    ['project', lease.project],
    ['owner', lease.owner],
    ['provider', `${lease.provider} (backend ${lease.backend})`],
    ['fleet', lease.fleet],
    ['scope', lease.scope],
    ['instance', `${lease.instanceID} (ref ${lease.ref})`],
    ['resource', lease.cloudID],
    ['created', time(lease.createdAt, now)],
    ['last touched', time(lease.lastTouchedAt, now)],
    [hasEnded(lease) ? 'would have expired' : 'expires', time(lease.expiresAt, now)],
    ['ttl, idle', `${formatDuration(lease.ttlSeconds * 1000)}, ${formatDuration(lease.idleTimeoutSeconds * 1000)}`],
    ['keep', lease.keep ? 'yes' : null],
    [
      'labels',
      Object.entries(lease.labels)
        .map(([key, value]) => `${key}=${value}`)
        .join(' '),
    ],
    ['ended', time(lease.endedAt, now)],
    ['retained until', time(lease.retainUntil, now)],
    ['failure', lease.failureCode === null ? null : `${lease.failureCode}: ${lease.failureError ?? ''}`],
    ['may exist', lease.provisioningResourceMayExist ? 'yes: the outcome of its create is uncertain' : null],
    ['access warning', lease.accessWarning],
    ['waiting', lease.waitsUntil === undefined ? null : waitText(Date.parse(lease.waitsUntil))],
    ['cleanup', cleanup.state === 'none' ? null : cleanupText(lease)],
    ['cleanup attempts', cleanup.attempts > 0 ? cleanup.attempts : null],
    ['cleanup error', cleanup.error],
    ['cleanup retry', time(cleanup.retryAt, now)],
    ['gone', time(cleanup.goneAt, now)],
  ])
}
