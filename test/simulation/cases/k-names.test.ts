/** Class K: names, tags, unicode. */
import { afterEach, expect, it } from 'vitest'
import { eachStore } from '../../support/stores.ts'
import { graceSeconds, openCases } from './support.ts'

const aRef = /^[a-z][a-z0-9]{11}$/

eachStore('names', (open) => {
  const cases = openCases()
  afterEach(() => cases.close())

  it.each([
    ['80 letters', 'a'.repeat(80)],
    ['a separator where it would be cut', `${'b'.repeat(40)}-${'c'.repeat(21)}_.-${'d'.repeat(40)}`],
    ['other alphabets', 'Ümlaut Größe — 日本語 🚀 x'],
  ])(
    'a name of %s leaves the ref what it is: twelve characters, never cut, and enough to be told apart (case K1, K2)',
    async (_what, name) => {
      const one = await cases.open(await open())
      const live = await one.lease({ slug: name, labels: { team: 'x'.repeat(256) } })
      const orphan = await one.orphan({ slug: name, labels: { note: name.slice(0, 256) } })
      for (const lease of [live, orphan]) {
        const tags = one.cloud.get(lease.cloudID)?.tags ?? {}
        expect(tags['leasehold_ref']).toBe(lease.ref)
        expect(lease.ref).toMatch(aRef)
      }
      const { name: inLedger } = await one.store.read(({ db }) =>
        db
          .selectFrom('ledger')
          .select('owner_name as name')
          .where('ref', '=', live.ref as never)
          .executeTakeFirstOrThrow(),
      )
      expect(inLedger).toBe(live.slug)
      await one.sweep()
      await one.sweep(graceSeconds + 60)
      await one.gone(orphan.cloudID)
      expect(one.running()).toEqual([live.cloudID])
    },
  )

  it('two names that are equal in their first 63 characters have refs of their own, and only the ended one goes (case K3)', async () => {
    const one = await cases.open(await open())
    const stem = 'e'.repeat(63)
    const [first, second] = [await one.lease({ slug: `${stem}-first` }), await one.lease({ slug: `${stem}-second` })]
    expect(first.ref).not.toBe(second.ref)
    expect(first.slug).not.toBe(second.slug)
    one.cloud.rearm(second.cloudID, 365 * 86_400_000)
    await one.deregister(second)
    await one.sweep()
    await one.sweep(graceSeconds + 60)
    await one.gone(second.cloudID)
    expect(one.running()).toEqual([first.cloudID])
    expect(await one.leaseView(first.id)).toMatchObject({ state: 'active' })
  })
})
