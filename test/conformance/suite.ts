/**
 * What every provider must do, whatever it stands for. A provider's own test calls `providerConformance` with the few things
 * that only it knows: how to make a stranger, and which lies to tell.
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { letterFirst } from '../../src/lib/ids.ts'
import type { Ref } from '../../src/model/ids.ts'
import type { CreateRequest, FoundResource, Provider, ResourceIdentity } from '../../src/providers/contract.ts'
import { shapeOf } from '../../src/model/topology.ts'
import { listingConformance } from './listing.ts'
import { wipeConformance } from './wiping.ts'
import { context, createRequest, created } from './request.ts'

export interface ConformanceWorld {
  provider: Provider
  config: Record<string, unknown>
  /** Something of the same kind that nothing of ours made: its identity as a liar would give it, and whether it still stands. */
  stranger(): Promise<{ identity: ResourceIdentity; stands(): boolean }>
  /** Identities that name a living resource of ours, and are wrong in one point each: what is wrong, and the lie. */
  lies(resource: ResourceIdentity, other: ResourceIdentity): [string, ResourceIdentity][]
  /** Ends the resource by other hands, leaving whatever the provider has of its own. */
  kill(resource: ResourceIdentity): Promise<void>
  /** How many owner resources stand that carry the ref, counted without the provider. */
  count(ref: string): Promise<number>
  /** The provider's published state table: its word for a state, and what it can mean. */
  states: Readonly<Record<string, FoundResource['existence'] | readonly FoundResource['existence'][]>>
  /** Something that carries all tags of the resource and that no attempt made; its native id. */
  copy(resource: ResourceIdentity): Promise<string>
  /** Something that carries a ref tag of this text, whatever it is; its native id. */
  tagged(ref: string): Promise<string>
  /** Makes a listing of the owner's kind fail in the first location, and answers how to mend it. */
  breakListing(): Promise<() => Promise<void>>
  /** Makes the account, or the location, of everything answer that it is not there itself; and answers how to mend it. */
  loseAccount(): Promise<() => Promise<void>>
  /** Changes something of a resource that its version tells; only where reads show one. */
  touch?(resource: ResourceIdentity): Promise<void>
  /** Leaves something in a living resource as a holder would: more than one thing, where it has several kinds. Only with `wipes`. */
  leave?(resource: ResourceIdentity): Promise<void>
  /** Makes the tags of a resource unreadable; only where a provider's can be. */
  hideTags?(resource: ResourceIdentity): Promise<void>
  dispose(): Promise<void>
}

export interface ConformanceTraits {
  /** The world has `hideTags`. */
  tagsCanHide?: boolean
  /** Reads show a version; the world has `touch`. */
  versions?: boolean
  /** The world has `leave`, and what was left can be taken away with proof. */
  wipes?: boolean
}

export const providerConformance = (name: string, setup: () => Promise<ConformanceWorld>, traits: ConformanceTraits = {}): void => {
  listingConformance(name, setup, traits)
  wipeConformance(name, setup, traits)
  describe(`${name} keeps the provider contract`, () => {
    let world: ConformanceWorld
    let provider: Provider
    const make = async (changes: Partial<CreateRequest> = {}) => {
      const request = createRequest(provider, world.config, changes)
      return { request, resource: created(await provider.create(request, context())) }
    }
    const find = async (ref: Ref): Promise<FoundResource[]> => {
      const outcome = await provider.find(ref, world.config, context())
      if (outcome.kind !== 'complete') throw new Error(`incomplete: ${outcome.why}`)
      return outcome.found
    }
    const read = (resource: ResourceIdentity) => provider.read(resource, world.config, context())
    const remove = (resource: ResourceIdentity) => provider.remove(resource, world.config, context())
    const removeForGood = async (resource: ResourceIdentity) => {
      for (;;) {
        const outcome = await remove(resource)
        if (outcome.kind === 'gone') return
        if (outcome.kind !== 'accepted' && outcome.kind !== 'retryLater') throw new Error(`not removed: ${JSON.stringify(outcome)}`)
      }
    }

    beforeEach(async () => {
      world = await setup()
      provider = world.provider
    })
    afterEach(() => world.dispose())

    it('names its scope the same way every time, and in what it makes', async () => {
      const first = await provider.scope(world.config, context())
      expect(first.kind).toBe('known')
      expect(await provider.scope(world.config, context())).toEqual(first)
      const { resource } = await make()
      expect(first.kind === 'known' && first.scope).toBe(resource.scope)
      expect(resource).toMatchObject({ kind: provider.ownerKind, location: provider.locations[0] })
    })

    it('makes one resource for one attempt token, however often it is asked', async () => {
      const { request, resource } = await make()
      const again = await provider.create(request, context())
      expect(created(again)).toEqual(resource)
      expect(await world.count(request.ref)).toBe(1)
      expect(await find(request.ref)).toHaveLength(1)
    })

    it('makes one resource for one attempt token when asked twice at the same time', async () => {
      const request = createRequest(provider, world.config)
      const outcomes = await Promise.all([provider.create(request, context()), provider.create(request, context())])
      const made = outcomes.filter((outcome) => outcome.kind === 'created').map(created)
      expect(made.length).toBeGreaterThan(0)
      expect(new Set(made.map((resource) => resource.immutableId)).size).toBe(1)
      // The loser of the race may still be on its way out.
      await expect.poll(() => world.count(request.ref)).toBe(1)
    })

    it('makes different resources for different refs', async () => {
      const [one, two] = [await make(), await make()]
      expect(one.resource.immutableId).not.toBe(two.resource.immutableId)
      expect(one.resource.nativeId).not.toBe(two.resource.nativeId)
    })

    it('finds by ref exactly what create made, with the tags and one more fact that names the attempt (orphans R16)', async () => {
      const { request, resource } = await make()
      await make()
      const [found, ...others] = await find(request.ref)
      expect(others).toEqual([])
      expect(found).toMatchObject({
        resource,
        tags: {
          ref: request.ref,
          installation: request.installation,
          attempt: request.attemptToken,
          mac: provider.writesMac ? request.mac : null,
        },
        fixedAttemptToken: request.attemptToken,
        existence: 'exists',
      })
    })

    it('writes no keyed tag where it is given none', async () => {
      const { request } = await make({ mac: null })
      expect((await find(request.ref)).map((found) => found.tags.mac)).toEqual([null])
    })

    it('finds both attempts of one ref', async () => {
      const { request, resource } = await make()
      const second = await make({ ref: request.ref, installation: request.installation, attemptNumber: 2 })
      const ids = (await find(request.ref)).map((found) => found.resource.immutableId)
      expect(ids.toSorted()).toEqual([resource.immutableId, second.resource.immutableId].toSorted())
    })

    it('finds nothing, and completely, for a ref that made nothing', async () => {
      await make()
      expect(await provider.find(letterFirst(12) as Ref, world.config, context())).toEqual({
        kind: 'complete',
        found: [],
        contradictions: [],
      })
    })

    it('reads a resource as present, under the identity that create gave it', async () => {
      const { request, resource } = await make()
      const outcome = await read(resource)
      expect(outcome).toMatchObject({
        kind: 'present',
        contradictions: [],
        found: { resource, existence: 'exists', fixedAttemptToken: request.attemptToken, tags: { ref: request.ref } },
      })
    })

    it('removes a resource, and says gone only when it is', async () => {
      const { request, resource } = await make()
      await removeForGood(resource)
      expect(await world.count(request.ref)).toBe(0)
      expect((await read(resource)).kind).toBe('absent')
      expect(await find(request.ref)).toEqual([])
    })

    it('answers gone again when what is asked for is absent already (orphans R25)', async () => {
      const { resource } = await make()
      await removeForGood(resource)
      expect((await remove(resource)).kind).toBe('gone')
      expect((await remove(resource)).kind).toBe('gone')
    })

    it('leaves nothing when two removals of one resource run at once', async () => {
      const { request, resource } = await make()
      const outcomes = await Promise.all([remove(resource), remove(resource)])
      expect(outcomes.map((outcome) => outcome.kind)).not.toContain('blocked')
      await removeForGood(resource)
      expect(await world.count(request.ref)).toBe(0)
    })

    it('removes only what it is asked to remove', async () => {
      const [one, two] = [await make(), await make()]
      await removeForGood(one.resource)
      expect(await read(two.resource)).toMatchObject({ kind: 'present', found: { existence: 'exists' } })
      expect(await world.count(two.request.ref)).toBe(1)
    })

    it('believes "not found" only of the exact resource: of an account or a location that is not there it knows nothing (leases R86)', async () => {
      const { request, resource } = await make()
      const mend = await world.loseAccount()
      const group = { ref: request.ref, location: resource.location, attemptToken: request.attemptToken, known: [resource] }
      expect((await read(resource)).kind).toBe('unknown')
      expect((await provider.find(request.ref, world.config, context())).kind).toBe('incomplete')
      if (provider.inspect) expect((await provider.inspect(group, world.config, context())).kind).toBe('incomplete')
      expect(['unknown', 'blocked', 'retryLater']).toContain((await remove(resource)).kind)
      await mend()
      // The twin: it stood all the while, and once it is gone the exact read says so.
      expect((await read(resource)).kind).toBe('present')
      await removeForGood(resource)
      expect((await read(resource)).kind).toBe('absent')
    })

    it('removes nothing that changed after it was read, where its reads show a version (leases R91)', async () => {
      const { request, resource } = await make()
      const versionNow = async (): Promise<string | undefined> => {
        const outcome = await read(resource)
        return outcome.kind === 'present' ? outcome.found.version : undefined
      }
      const asRead = (version: string | undefined) =>
        provider.remove(resource, world.config, context(), version === undefined ? {} : { version })
      const before = await versionNow()
      expect(before !== undefined).toBe(traits.versions === true)
      if (before !== undefined) {
        expect(await versionNow()).toBe(before)
        await world.touch?.(resource)
        expect((await asRead(before)).kind).toBe('changed')
        expect(await world.count(request.ref)).toBe(1)
        expect(await versionNow()).not.toBe(before)
      }
      // As it was read right before, it goes.
      expect(['gone', 'accepted']).toContain((await asRead(await versionNow())).kind)
      await removeForGood(resource)
      expect(await world.count(request.ref)).toBe(0)
    })

    it('leaves alone what is not ours, whatever identity it is given', async () => {
      const stranger = await world.stranger()
      const outcome = await remove(stranger.identity)
      expect(['blocked', 'gone', 'denied', 'unknown']).toContain(outcome.kind)
      expect(stranger.stands()).toBe(true)
    })

    it('refuses each lying identity, and what it points at goes on', async () => {
      const [mine, other] = [await make(), await make()]
      const lies = world.lies(mine.resource, other.resource)
      expect(lies.length).toBeGreaterThan(0)
      for (const [lie, identity] of lies) {
        const removed = (await remove(identity)).kind
        const seen = (await read(identity)).kind
        const left = [await world.count(mine.request.ref), await world.count(other.request.ref)]
        expect({ lie, accepted: removed === 'accepted', present: seen === 'present', left }).toEqual({
          lie,
          accepted: false,
          present: false,
          left: [1, 1],
        })
      }
      // The twin: told the truth, it removes it.
      await removeForGood(mine.resource)
      expect(await world.count(mine.request.ref)).toBe(0)
    })

    it('shows a group whole when it is inspected, in the shape of its topology, without what belongs to others, and says so when it was cut short (leases R77)', async () => {
      const topology = provider.topology?.(world.config)
      expect(topology?.order[0]).toBe(provider.ownerKind)
      const { request, resource } = await make()
      await make({ ref: request.ref, attemptNumber: 2, attemptToken: 'f'.repeat(32) })
      const group = { ref: request.ref, location: resource.location, attemptToken: request.attemptToken, known: [resource] }
      if (!provider.inspect) {
        // What knows no groups goes in one call.
        expect(topology?.order).toHaveLength(1)
        return
      }
      const inspect = async (known: ResourceIdentity[], signal = context().signal) =>
        provider.inspect?.({ ...group, known }, world.config, { signal })
      const seen = await inspect([resource])
      if (seen?.kind !== 'complete' || !topology) throw new Error('it could not be inspected')
      const members = seen.members.map((one) => ({
        kind: one.resource.kind,
        nativeId: one.resource.nativeId,
        attachedTo: one.attachedTo ?? [],
        takesAlong: one.takesAlong ?? [],
        reportOnly: one.reportOnly ?? null,
        one,
      }))
      const shape = shapeOf(topology, members, { entrance: 'ended', gone: [] })
      if (shape.kind !== 'exact') throw new Error(shape.why)
      expect(shape.members[0]?.one.resource).toEqual(resource)
      for (const { one } of shape.members) {
        expect(one.tags).toMatchObject({ ref: request.ref, installation: request.installation, attempt: request.attemptToken })
        expect(one.fixedAttemptToken).toBe(request.attemptToken)
        expect(await read(one.resource)).toMatchObject({ kind: 'present', found: { resource: one.resource } })
      }
      expect(await inspect([resource], AbortSignal.abort())).toMatchObject({ kind: 'incomplete' })
      // Taken back in that order nothing is in the way, and without its owner the rest is still found.
      for (const [i, { one }] of shape.members.entries()) {
        await removeForGood(one.resource)
        const left = await inspect([resource])
        expect(left?.kind === 'complete' && left.members.map((member) => member.resource.nativeId).toSorted()).toEqual(
          shape.members
            .slice(i + 1)
            .map((member) => member.nativeId)
            .toSorted(),
        )
      }
    })

    it('still finds and removes what ended by itself', async () => {
      const { request, resource } = await make()
      await world.kill(resource)
      const outcome = await read(resource)
      expect(['present', 'absent']).toContain(outcome.kind)
      if (outcome.kind === 'present') expect(outcome.found.existence).not.toBe('exists')
      await removeForGood(resource)
      expect((await read(resource)).kind).toBe('absent')
      expect(await find(request.ref)).toEqual([])
    })

    it('makes nothing when its call was ended before it began', async () => {
      const request = createRequest(provider, world.config)
      const outcome = await provider.create(request, { signal: AbortSignal.abort() })
      expect(outcome.kind).toBe('rejected')
      expect(await world.count(request.ref)).toBe(0)
      expect(await find(request.ref)).toEqual([])
    })

    it('removes nothing when its call was ended before it began', async () => {
      const { request, resource } = await make()
      const outcome = await provider.remove(resource, world.config, { signal: AbortSignal.abort() })
      expect(['retryLater', 'unknown']).toContain(outcome.kind)
      expect(await world.count(request.ref)).toBe(1)
    })

    it('says that it does not know, and not that there is nothing, when a look is cut short', async () => {
      const { request, resource } = await make()
      const ended = { signal: AbortSignal.abort() }
      expect((await provider.find(request.ref, world.config, ended)).kind).toBe('incomplete')
      expect((await provider.read(resource, world.config, ended)).kind).toBe('unknown')
    })

    it('accounts for a create that was cut short anywhere', async () => {
      for (const milliseconds of [1, 5, 10, 15, 20, 30]) {
        const request = createRequest(provider, world.config)
        const outcome = await provider.create(request, { signal: AbortSignal.timeout(milliseconds) })
        const found = await find(request.ref)
        if (outcome.kind === 'rejected') expect([found, await world.count(request.ref)]).toEqual([[], 0])
        for (const { resource } of found) await removeForGood(resource)
        expect(await world.count(request.ref)).toBe(0)
      }
    })

    it('refuses a configuration with a key that it does not know, and names it', () => {
      expect(() => provider.parseConfig({ noSuchKey: 1 })).toThrow(/noSuchKey/)
      expect(provider.parseConfig(provider.parseConfig(world.config))).toEqual(provider.parseConfig(world.config))
    })

    it('reports on itself, with a remedy for whatever is not right', async () => {
      const checks = await provider.doctor(world.config, context())
      expect(checks.length).toBeGreaterThan(0)
      expect(checks.filter((check) => (check.remedy === null) !== (check.level === 'ok'))).toEqual([])
    })
  })
}
