/** The part of the conformance suite about listings: groups, coverage, refs, the two facts, and that a failure never looks like emptiness. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Contradiction, Coverage, CreateRequest, ListedResource, Provider, ResourceIdentity } from '../../src/providers/contract.ts'
import { letterFirst } from '../../src/lib/ids.ts'
import type { Ref } from '../../src/model/ids.ts'
import { context, createRequest, created } from './request.ts'
import type { ConformanceTraits, ConformanceWorld } from './suite.ts'

export interface Listing {
  resources: ListedResource[]
  coverage: Coverage[]
  contradictions: Contradiction[]
}

/** A whole listing, gathered. */
export const listAll = async (
  provider: Provider,
  config: Record<string, unknown>,
  signal: AbortSignal = context().signal,
  locations = provider.locations,
): Promise<Listing> => {
  const listing: Listing = { resources: [], coverage: [], contradictions: [] }
  if (!provider.list) throw new Error(`${provider.name} can't list`)
  for await (const item of provider.list(locations, config, { signal })) {
    if (item.type === 'page') {
      expect(item.resources.filter((one) => one.resource.kind !== item.kind || one.resource.location !== item.location)).toEqual([])
      listing.resources.push(...item.resources)
    } else if (item.type === 'coverage') listing.coverage.push(item.coverage)
    else listing.contradictions.push(item.contradiction)
  }
  return listing
}

export const listingConformance = (name: string, setup: () => Promise<ConformanceWorld>, traits: ConformanceTraits): void => {
  describe(`${name} lists as the contract says`, () => {
    let world: ConformanceWorld
    let provider: Provider
    const make = async (changes: Partial<CreateRequest> = {}) => {
      const request = createRequest(provider, world.config, changes)
      return { request, resource: created(await provider.create(request, context())) }
    }
    const list = (signal?: AbortSignal) => listAll(provider, world.config, signal)
    const groupOf = ({ resources }: Listing, request: CreateRequest): ListedResource[] =>
      resources.filter((one) => one.tags.ref === request.ref && one.tags.attempt === request.attemptToken)
    const removeForGood = async (resource: ResourceIdentity) => {
      for (;;) {
        const outcome = await provider.remove(resource, world.config, context())
        if (outcome.kind === 'gone') return
        if (outcome.kind !== 'accepted' && outcome.kind !== 'retryLater') throw new Error(`not removed: ${JSON.stringify(outcome)}`)
      }
    }

    beforeEach(async () => {
      world = await setup()
      provider = world.provider
    })
    afterEach(() => world.dispose())

    it('with one coverage for each location and kind, complete when nothing is wrong, also when there is nothing (orphans R21)', async () => {
      const cells = provider.locations.flatMap((location) => provider.kinds.map((kind) => `${location} ${kind} complete`))
      const empty = await list()
      expect(empty.coverage.map(({ location, kind, state }) => `${location} ${kind} ${state.kind}`).toSorted()).toEqual(cells.toSorted())
      await make()
      const { coverage } = await list()
      expect(coverage.map(({ location, kind, state }) => `${location} ${kind} ${state.kind}`).toSorted()).toEqual(cells.toSorted())
      expect(provider.kinds[0]).toBe(provider.ownerKind)
    })

    it('an owner under the identity that create gave it, with the tags and one fact fixed at creation (orphans R16, R20)', async () => {
      const { request, resource } = await make()
      await make()
      const owners = groupOf(await list(), request).filter((one) => one.resource.kind === provider.ownerKind)
      expect(owners).toHaveLength(1)
      expect(owners[0]).toMatchObject({
        resource,
        name: request.name,
        tags: {
          ref: request.ref,
          installation: request.installation,
          attempt: request.attemptToken,
          mac: provider.writesMac ? request.mac : null,
        },
        fixedAttemptToken: request.attemptToken,
        existence: 'exists',
        reportOnly: null,
      })
      expect(owners[0]?.labels).toMatchObject(request.labels)
      expect(owners[0]?.createdAt).toBeGreaterThan(0)
    })

    it('what it reads: a listing and an exact read agree', async () => {
      const { request } = await make()
      for (const { resource, tags, fixedAttemptToken, providerState, existence } of groupOf(await list(), request)) {
        const read = await provider.read(resource, world.config, context())
        expect(read).toMatchObject({ kind: 'present', found: { resource, tags, fixedAttemptToken, providerState, existence } })
      }
    })

    it('groups that hang together: every member carries both facts, the keyed tag where there is room, and stands on the owner by its attachments (orphans R18)', async () => {
      const { request, resource } = await make()
      const group = groupOf(await list(), request)
      expect(
        group.filter(
          (one) =>
            one.fixedAttemptToken !== request.attemptToken ||
            one.tags.installation !== request.installation ||
            one.tags.mac !== (provider.writesMac ? request.mac : null),
        ),
      ).toEqual([])
      const byId = new Map(group.map((one) => [one.resource.nativeId, one]))
      const standsOn = (id: string, seen: string[] = []): boolean =>
        id === resource.nativeId || (!seen.includes(id) && (byId.get(id)?.attachedTo ?? []).some((next) => standsOn(next, [...seen, id])))
      expect([...byId.keys()].filter((id) => !standsOn(id))).toEqual([])
    })

    it('two attempts of one ref as two groups (orphans R13, U14)', async () => {
      const one = await make()
      const two = await make({ ref: one.request.ref, installation: one.request.installation, attemptNumber: 2 })
      const listing = await list()
      const [first, second] = [groupOf(listing, one.request), groupOf(listing, two.request)]
      expect(first.length).toBe(second.length)
      const ids = [...first, ...second].map((member) => member.resource.immutableId)
      expect(new Set(ids).size).toBe(ids.length)
    })

    it('nothing that carries no ref (orphans R27)', async () => {
      const stranger = await world.stranger()
      const { resources, contradictions } = await list()
      const ids = [...resources.map((one) => one.resource.immutableId), ...contradictions.map((one) => one.nativeId)]
      expect(ids).not.toContain(stranger.identity.immutableId)
      expect(ids).not.toContain(stranger.identity.nativeId)
    })

    it('a copy of all tags without the second fact, or as a contradiction (orphans R103)', async () => {
      const { request, resource } = await make()
      const copy = await world.copy(resource)
      const listing = await list()
      const listed = listing.resources.find((one) => one.resource.nativeId === copy)
      const contradiction = listing.contradictions.find((one) => one.nativeId === copy)
      expect([listed, contradiction].filter((one) => one !== undefined)).toHaveLength(1)
      if (listed) expect([listed.tags.ref, listed.fixedAttemptToken]).toEqual([request.ref, null])
      else expect(contradiction?.why).toContain(request.ref)
      // The twin: the original still has both.
      const original = listing.resources.find((one) => one.resource.immutableId === resource.immutableId)
      expect(original?.fixedAttemptToken).toBe(request.attemptToken)
    })

    it.each([' r000000abcd1', 'R000000ABCD1', 'x'])('a malformed ref as it is written, %j (case B4)', async (ref) => {
      const id = await world.tagged(ref)
      const { resources, contradictions } = await list()
      const listed = resources.find((one) => one.resource.nativeId === id)
      const contradiction = contradictions.find((one) => one.nativeId === id)
      if (listed) expect([listed.tags.ref, listed.fixedAttemptToken]).toEqual([ref, null])
      else expect(contradiction?.why).toContain(ref)
    })

    it('a cell that failed as partial, with the reason, and never as empty (orphans R22, I5)', async () => {
      const { request } = await make()
      const mend = await world.breakListing()
      const { coverage } = await list()
      const cell = coverage.find(({ location, kind }) => location === provider.locations[0] && kind === provider.ownerKind)
      expect(cell?.state.kind).toBe('partial')
      expect(cell?.state.kind === 'partial' && cell.state.why).toMatch(/\w/)
      const cells = coverage.map((one) => `${one.location} ${one.kind}`)
      expect(new Set(cells).size).toBe(provider.locations.length * provider.kinds.length)
      expect(cells).toHaveLength(provider.locations.length * provider.kinds.length)
      // A look for one ref that fails the same way says so too.
      expect((await provider.find(request.ref, world.config, context())).kind).toBe('incomplete')
      await mend()
      const mended = await list()
      expect(mended.coverage.filter(({ state }) => state.kind !== 'complete')).toEqual([])
      expect(groupOf(mended, request).length).toBeGreaterThan(0)
    })

    it('no cell as complete when its call was ended before it began', async () => {
      await make()
      const { coverage } = await list(AbortSignal.abort()).catch(() => ({ coverage: [] }))
      expect(coverage.filter(({ state }) => state.kind === 'complete')).toEqual([])
    })

    it('what was removed no more, and what was not removed all the same', async () => {
      const [one, two] = [await make(), await make()]
      await removeForGood(one.resource)
      const listing = await list()
      const left = groupOf(listing, one.request).filter(
        (member) => member.resource.kind === provider.ownerKind && member.existence !== 'gone',
      )
      expect(left).toEqual([])
      expect(groupOf(listing, two.request).length).toBeGreaterThan(0)
    })

    it('states of its published table, and with their meaning (orphans U10)', async () => {
      const [one, two] = [await make(), await make()]
      await world.kill(two.resource)
      const seen = (await list()).resources
      expect(seen.some((member) => member.resource.immutableId === one.resource.immutableId)).toBe(true)
      for (const { providerState, existence } of seen)
        expect([world.states[providerState] ?? []].flat(), providerState).toContain(existence)
    })

    // Where tags are read from the process itself they can't be hidden, so there is nothing to show.
    if (traits.tagsCanHide) {
      it('a machine whose tags can not be read, made with a token as ours are, so that a look for a ref never says that there is none (I5, case I2)', async () => {
        const { request, resource } = await make()
        await world.hideTags?.(resource)
        expect(await provider.find(request.ref as Ref, world.config, context())).toMatchObject({ kind: 'incomplete' })
        // The twin: without it the answer is whole again.
        await removeForGood(resource)
        expect(await provider.find(request.ref as Ref, world.config, context())).toMatchObject({ kind: 'complete', found: [] })
      })

      it('unreadable tags as null, and not as none (case I2)', async () => {
        const { resource } = await make()
        await world.hideTags?.(resource)
        const { resources } = await list()
        const hidden = resources.find((one) => one.resource.immutableId === resource.immutableId)
        expect(hidden).toMatchObject({ labels: null, tags: { ref: null, installation: null, attempt: null } })
      })
    }

    it('everything of many, each once, over several pages (case J1, J2)', async () => {
      const ref = letterFirst(12) as Ref
      const installation = createRequest(provider, world.config).installation
      const made = []
      for (let attemptNumber = 1; attemptNumber <= 7; attemptNumber += 1)
        made.push((await make({ ref, installation, attemptNumber })).resource.immutableId)
      const ids = (await list()).resources
        .filter((one) => one.tags.ref === ref && one.resource.kind === provider.ownerKind)
        .map((one) => one.resource.immutableId)
      expect(ids.toSorted()).toEqual(made.toSorted())
    })
  })
}
