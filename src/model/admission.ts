/** Who may have one more lease: caps on live leases and on creates that are under way, for each project and for each owner in it. */
import { LeaseholdError } from './errors.ts'

/** null: as many as they like. */
export interface AdmissionCaps {
  leasesPerProject: number | null
  leasesPerOwner: number | null
  createsPerProject: number | null
  createsPerOwner: number | null
}
export const noCaps: AdmissionCaps = { leasesPerProject: null, leasesPerOwner: null, createsPerProject: null, createsPerOwner: null }

export const anyCap = (caps: AdmissionCaps): boolean => Object.values(caps).some((cap) => cap !== null)

export interface LiveLease {
  owner: string
  /** Its create is under way. */
  provisioning: boolean
  /** ms: when it ends at the latest, unless its clock is moved. */
  endsAt: number
}

const settings: Record<keyof AdmissionCaps, string> = {
  leasesPerProject: 'maxLeasesPerProject',
  leasesPerOwner: 'maxLeasesPerOwner',
  createsPerProject: 'maxCreatesPerProject',
  createsPerOwner: 'maxCreatesPerOwner',
}

/** How long a client waits before it asks again: a create ends soon, a lease when it ends; never under a second and never over a minute. */
const retryAfterSeconds = (creates: boolean, earliestEnd: number, now: number): number =>
  creates ? 5 : Math.min(60, Math.max(1, Math.ceil((earliestEnd - now) / 1000)))

/**
 * Null: one more fits. Else the refusal, which says which cap it is, how full, and what to wait for.
 * @param live the project's live leases
 */
export const admit = (
  live: readonly LiveLease[],
  caps: AdmissionCaps,
  project: string,
  owner: string,
  now: number,
): LeaseholdError | null => {
  const mine = live.filter((lease) => lease.owner === owner)
  const checks: [keyof AdmissionCaps, readonly LiveLease[], string][] = [
    ['leasesPerOwner', mine, `${owner} has`],
    ['leasesPerProject', live, `project "${project}" has`],
    ['createsPerOwner', mine.filter((lease) => lease.provisioning), `${owner} has`],
    ['createsPerProject', live.filter((lease) => lease.provisioning), `project "${project}" has`],
  ]
  for (const [name, counted, who] of checks) {
    const cap = caps[name]
    if (cap === null || counted.length < cap) continue
    const creates = name.startsWith('creates')
    const earliestEnd = counted.reduce((earliest, lease) => Math.min(earliest, lease.endsAt), Number.POSITIVE_INFINITY)
    const plural = counted.length === 1 ? '' : 's'
    const what = `${counted.length} ${creates ? `create${plural} under way` : `live lease${plural}`}`
    const wait = creates
      ? 'wait until one of them has ended'
      : `release one, or wait: the first to end does so at ${new Date(earliestEnd).toISOString()} unless it is used`
    return new LeaseholdError('cap_reached', `${who} ${what}, and ${settings[name]} is ${cap}: ${wait}`, {
      cap: settings[name],
      limit: cap,
      count: counted.length,
      retryAfterSeconds: retryAfterSeconds(creates, earliestEnd, now),
    })
  }
  return null
}
