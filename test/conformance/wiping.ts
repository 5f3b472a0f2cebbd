/** The capability to give one box to one holder after another: what every provider that has it must do, and what one without may not pretend. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Provider, ResourceIdentity, Wipe, WipeContext } from '../../src/providers/contract.ts'
import { context, createRequest, created, rearming } from './request.ts'
import type { ConformanceTraits, ConformanceWorld } from './suite.ts'

const wiping = (stands = true): WipeContext => ({ ...context(), stands: () => stands })

export const wipeConformance = (name: string, setup: () => Promise<ConformanceWorld>, traits: ConformanceTraits): void => {
  describe(`${name} between two holders`, () => {
    let world: ConformanceWorld
    let provider: Provider
    const make = async (): Promise<ResourceIdentity> =>
      created(await provider.create(createRequest(provider, world.config, { leaseId: null }), context()))
    const wipe = (): Wipe => provider.wipe as Wipe
    const leftovers = async (resource: ResourceIdentity): Promise<string[]> => {
      const seen = await wipe().leftovers(resource, world.config, context())
      if (seen.kind !== 'complete') throw new Error(`incomplete: ${seen.why}`)
      return seen.left
    }

    beforeEach(async () => {
      world = await setup()
      provider = world.provider
    })
    afterEach(() => world.dispose())

    it.runIf(traits.wipes !== true)('says so where it can prove nothing: no wipe succeeds, and no listing is complete', async () => {
      const resource = await make()
      if (provider.wipe === undefined) return
      expect((await wipe().clear(resource, world.config, wiping())).kind).toBe('failed')
      expect((await wipe().leftovers(resource, world.config, context())).kind).toBe('incomplete')
    })

    it('moves no clock for who may have lost the box to another holder, and moves it for who has it', async () => {
      const resource = await make()
      if (provider.rearm === undefined) return
      await expect(provider.rearm(resource, 0, world.config, rearming(1, false))).rejects.toThrow(/lost/)
      const aborted = { ...rearming(), signal: AbortSignal.abort(new Error('the lock on this row was lost')) }
      await expect(provider.rearm(resource, 0, world.config, aborted)).rejects.toThrow(/lost/)
      expect(await provider.read(resource, world.config, context())).toMatchObject({ kind: 'present', found: { existence: 'exists' } })
      await provider.rearm(resource, 600, world.config, rearming())
    })

    describe.runIf(traits.wipes === true)('where it can wipe', () => {
      const left = async (): Promise<ResourceIdentity> => {
        const resource = await make()
        await world.leave?.(resource)
        return resource
      }

      it('shows nothing in what was just made, and everything that a holder left', async () => {
        expect(await leftovers(await make())).toEqual([])
        expect((await leftovers(await left())).length).toBeGreaterThan(0)
      })

      it('takes all of it away and leaves the box itself as it was, however often it is asked', async () => {
        const resource = await left()
        const before = await provider.read(resource, world.config, context())
        for (let i = 0; i < 2; i++) expect(await wipe().clear(resource, world.config, wiping())).toEqual({ kind: 'wiped' })
        expect(await leftovers(resource)).toEqual([])
        expect(await provider.read(resource, world.config, context())).toEqual(before)
        await world.leave?.(resource)
        expect((await leftovers(resource)).length).toBeGreaterThan(0)
      })

      it('touches nothing once whoever asked may have lost the box to another', async () => {
        const resource = await left()
        const there = await leftovers(resource)
        expect((await wipe().clear(resource, world.config, wiping(false))).kind).toBe('failed')
        expect(await leftovers(resource)).toEqual(there)
      })

      it('touches nothing by an identity that is wrong in one point, and does not call it empty', async () => {
        const [resource, other] = [await left(), await left()]
        const there = [await leftovers(resource), await leftovers(other)]
        for (const [what, lie] of world.lies(resource, other)) {
          expect((await wipe().clear(lie, world.config, wiping())).kind, what).toBe('failed')
          expect((await wipe().leftovers(lie, world.config, context())).kind, what).toBe('incomplete')
        }
        expect([await leftovers(resource), await leftovers(other)]).toEqual(there)
      })

      it('is neither wiped nor empty when it is gone', async () => {
        const resource = await left()
        await world.kill(resource)
        expect((await wipe().clear(resource, world.config, wiping())).kind).toBe('failed')
        expect((await wipe().leftovers(resource, world.config, context())).kind).toBe('incomplete')
      })
    })
  })
}
