import { describe, expect, it } from 'vitest'
import { brokeredLabels, checkUserLabels } from '../../src/model/labels.ts'

const facts = {
  leaseId: 'lh_0123456789ab',
  slug: 'calm-otter',
  owner: 'ann',
  provider: 'process',
  keep: false,
  createdAtMs: 1_000,
  expiresAtMs: 2_000,
  ttlSeconds: 60,
  idleSeconds: 60,
}

describe("a user's labels", () => {
  it.each([...Object.keys(brokeredLabels(facts, {})), 'KEEP', ' Keep'])(
    'may not be "%s": Leasehold writes it, and none is overwritten silently',
    (key) => {
      expect(() => checkUserLabels({ [key]: 'yes' })).toThrowError(expect.objectContaining({ code: 'bad_request' }))
    },
  )

  it('of any other name are written as they are', () => {
    const user = { team: 'x', keeper: 'yes', 'owner-team': 'y' }
    expect(brokeredLabels(facts, checkUserLabels(user))).toMatchObject(user)
  })
})
