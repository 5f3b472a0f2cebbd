/**
 * The token that a box holds: it may beat and release its own lease, nothing else. Derived, so that a replayed create answers the
 * same one and nothing has to be stored (leases R10).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isLeaseId, type LeaseId } from '../model/ids.ts'

const prefix = 'lht_'
const idLength = 12

const mac = (secret: string, leaseId: LeaseId): Buffer => createHmac('sha256', secret).update(`lease-token:${leaseId}`).digest()

/** @param secret of the installation. @returns `lht_<12 hex of the lease id><base64url MAC>` */
export const leaseToken = (secret: string, leaseId: LeaseId): string =>
  `${prefix}${leaseId.slice(3)}${mac(secret, leaseId).toString('base64url')}`

/** The lease that the token is for, or null when it is none of ours. */
export const leaseOfToken = (secret: string, token: string): LeaseId | null => {
  if (!token.startsWith(prefix)) return null
  const leaseId = `lh_${token.slice(prefix.length, prefix.length + idLength)}`
  if (!isLeaseId(leaseId)) return null
  const given = Buffer.from(token.slice(prefix.length + idLength), 'base64url')
  const right = mac(secret, leaseId)
  return given.length === right.length && timingSafeEqual(given, right) ? leaseId : null
}
