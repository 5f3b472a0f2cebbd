import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { admit, noCaps, type AdmissionCaps, type LiveLease } from '../../src/model/admission.ts'

const now = Date.UTC(2026, 5, 1, 12)
const lease = (owner: string, provisioning = false, endsInSeconds = 30): LiveLease => ({
  owner,
  provisioning,
  endsAt: now + endsInSeconds * 1000,
})
const ask = (live: LiveLease[], caps: Partial<AdmissionCaps>) => admit(live, { ...noCaps, ...caps }, 'ci', 'ann', now)

describe('admission', () => {
  it('says which cap is reached, how full it is, and what to wait for', () => {
    const live = [lease('ann', false, 90), lease('ann', true, 20), lease('bob')]
    expect(ask(live, { leasesPerOwner: 2 })).toMatchObject({
      code: 'cap_reached',
      status: 429,
      message:
        'ann has 2 live leases, and maxLeasesPerOwner is 2: release one, or wait: the first to end does so at 2026-06-01T12:00:20.000Z unless it is used',
      details: { cap: 'maxLeasesPerOwner', limit: 2, count: 2, retryAfterSeconds: 20 },
    })
    expect(ask(live, { leasesPerProject: 3 })?.message).toMatch(/^project "ci" has 3 live leases/)
    expect(ask(live, { createsPerOwner: 1 })).toMatchObject({
      message: 'ann has 1 create under way, and maxCreatesPerOwner is 1: wait until one of them has ended',
      details: { retryAfterSeconds: 5 },
    })
    expect(ask(live, { createsPerProject: 1 })?.details).toMatchObject({ cap: 'maxCreatesPerProject' })
    // The twins: one more fits.
    expect(ask(live, { leasesPerOwner: 3, leasesPerProject: 4, createsPerOwner: 2, createsPerProject: 2 })).toBeNull()
    expect(ask(live, {})).toBeNull()
  })

  it('never lets a project or an owner past a cap, and refuses only where one is reached', () => {
    const cap = fc.option(fc.integer({ min: 1, max: 6 }))
    const caps = fc.record({ leasesPerProject: cap, leasesPerOwner: cap, createsPerProject: cap, createsPerOwner: cap })
    const live = fc.array(
      fc.record({ owner: fc.constantFrom('ann', 'bob'), provisioning: fc.boolean(), endsAt: fc.integer({ min: now, max: now + 1e6 }) }),
      { maxLength: 8 },
    )
    fc.assert(
      fc.property(live, caps, (leases, policy) => {
        const mine = leases.filter((one) => one.owner === 'ann')
        const full =
          leases.length >= (policy.leasesPerProject ?? Infinity) ||
          mine.length >= (policy.leasesPerOwner ?? Infinity) ||
          leases.filter((one) => one.provisioning).length >= (policy.createsPerProject ?? Infinity) ||
          mine.filter((one) => one.provisioning).length >= (policy.createsPerOwner ?? Infinity)
        const refusal = admit(leases, policy, 'ci', 'ann', now)
        expect(refusal !== null).toBe(full)
        if (refusal) expect(refusal.details['retryAfterSeconds']).toBeGreaterThan(0)
      }),
    )
  })
})
