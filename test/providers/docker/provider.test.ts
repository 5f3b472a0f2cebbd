/** The provider docker on a real Engine: what is particular to it. What every provider must do is in `test/conformance`. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { CreateOutcome, CreateRequest, ResourceIdentity } from '../../../src/providers/contract.ts'
import { partName } from '../../../src/providers/docker/identity.ts'
import { context, createRequest, created } from '../../conformance/request.ts'
import { withDocker } from '../../support/services/docker-suite.ts'
import { until } from '../process/support.ts'
import { type Boxes, openBoxes } from './support.ts'

const none = { containers: [], networks: [], volumes: [] }

// An Engine takes its time where others work beside it.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

withDocker('a box on an Engine', () => {
  let boxes: Boxes
  beforeEach(async () => {
    boxes = await openBoxes()
  })
  afterEach(() => boxes.dispose())

  const read = (resource: ResourceIdentity) => boxes.provider.read(resource, boxes.config, context())
  const remove = (resource: ResourceIdentity) => boxes.provider.remove(resource, boxes.config, context())
  const create = (request: CreateRequest): Promise<CreateOutcome> => boxes.provider.create(request, context())
  const find = async (ref: CreateRequest['ref']) => {
    const found = await boxes.provider.find(ref, boxes.config, context())
    if (found.kind !== 'complete') throw new Error(found.why)
    return found
  }
  const labelsOf = (request: CreateRequest, network?: string): Record<string, string> => ({
    'leasehold.ref': request.ref,
    'leasehold.installation': request.installation,
    'leasehold.attempt': request.attemptToken,
    ...(network === undefined ? {} : { 'leasehold.network': network }),
  })
  const stateOf = (container: string) =>
    boxes.call<{ State: { Status: string }; Config: { Labels: Record<string, string> } }>('GET', `/containers/${container}/json`)

  it('is a container, a network and a volume, all labelled in the call that makes them (leases R80)', async () => {
    const { request, resource, container } = await boxes.make({ labels: { team: 'web' } })
    const parts = await boxes.parts(
      ...Object.entries(labelsOf(request)).map(([key, value]) => `${key}=${value}`),
      'team=web',
      `leasehold.mac=${request.mac}`,
    )
    expect(parts).toEqual({ containers: [container], networks: [resource.immutableId], volumes: [partName(request)] })
    expect(
      boxes.proxy.seen
        .filter((call) => /^POST \S*\/(containers|networks|volumes)\/create/.test(call))
        .map((call) => /v1\.\d+\/(\w+)/.exec(call)?.[1]),
    ).toEqual(['networks', 'volumes', 'containers'])
  })

  it('goes in one call: container, network, volume, each by its own identity after a fresh read of it (leases R80)', async () => {
    const { request, resource, container } = await boxes.make()
    boxes.proxy.seen.splice(0)
    expect(await remove(resource)).toEqual({ kind: 'gone', requestId: null })
    const seen = boxes.proxy.seen.map((call) => call.replace(/\/v1\.\d+/, '').replace(/\?.*/, ''))
    expect(seen.filter((call) => call.startsWith('DELETE'))).toEqual([
      `DELETE /containers/${container}`,
      `DELETE /networks/${resource.immutableId}`,
      `DELETE /volumes/${partName(request)}`,
    ])
    for (const call of seen.filter((one) => one.startsWith('DELETE')))
      expect(seen.slice(0, seen.indexOf(call)).some((one) => one.startsWith(call.replace('DELETE', 'GET')))).toBe(true)
    expect(await boxes.ofRef(request.ref)).toEqual(none)
  })

  it.each([
    ['the container', /DELETE \S*\/containers\//, { networks: 1, volumes: 1 }],
    ['the network', /DELETE \S*\/networks\//, { networks: 1, volumes: 1 }],
    ['the volume', /DELETE \S*\/volumes\//, { networks: 0, volumes: 1 }],
  ])('is taken back further where its removal was interrupted at %s, under the same identity (leases R80)', async (_what, when, left) => {
    for (const afterwards of [false, true]) {
      const { request, resource } = await boxes.make()
      boxes.proxy.lies.push({ when, status: 500, body: { message: 'the power went out' }, afterwards })
      expect((await remove(resource)).kind).toBe('unknown')
      boxes.proxy.lies.splice(0)
      const { networks, volumes } = await boxes.ofRef(request.ref)
      const whole = networks.length + volumes.length > 0
      if (!afterwards) expect({ networks: networks.length, volumes: volumes.length }).toEqual(left)
      const now = await read(resource)
      if (whole) {
        expect(now).toMatchObject({ kind: 'present', found: { resource, existence: 'going', fixedAttemptToken: request.attemptToken } })
        // A listing knows which box it was, without the container (orphans R16).
        expect((await find(request.ref)).found.map((one) => one.resource.immutableId)).toEqual([resource.immutableId])
      } else expect(now.kind).toBe('absent')
      expect((await remove(resource)).kind).toBe('gone')
      expect((await read(resource)).kind).toBe('absent')
      expect(await boxes.ofRef(request.ref)).toEqual(none)
    }
  })

  it('leaves everything as it is while a container of others uses its network or its volume', async () => {
    const { resource, container, request } = await boxes.make()
    const guest = await boxes.stranger({ HostConfig: { NetworkMode: resource.immutableId } })
    const reader = await boxes.stranger({ HostConfig: { NetworkMode: 'none', VolumesFrom: [container] } })
    expect(await remove(resource)).toMatchObject({ kind: 'blocked', by: expect.stringContaining('container') })
    await boxes.call('DELETE', `/containers/${guest}?force=1`)
    expect((await remove(resource)).kind).toBe('blocked')
    expect((await stateOf(container)).State.Status).toBe('running')
    expect(await boxes.exists(reader)).toBe(true)
    // The twin: without them it goes.
    await boxes.call('DELETE', `/containers/${reader}?force=1`)
    expect((await remove(resource)).kind).toBe('gone')
    expect(await boxes.ofRef(request.ref)).toEqual(none)
  })

  it('is known by its ids: renamed it is still itself, and who took its name, its labels or both is a stranger that lives on (cases B13, C4)', async () => {
    const { request, resource, container } = await boxes.make()
    const { Labels: labels } = (await stateOf(container)).Config
    await boxes.call('POST', `/containers/${container}/rename?name=somebody`)
    const strangers = [
      await boxes.stranger({}, resource.nativeId),
      await boxes.stranger({ Labels: labels }),
      await boxes.stranger({ Labels: labels, HostConfig: { NetworkMode: 'none', VolumesFrom: [container] } }),
      await boxes.stranger({ Labels: { 'com.example': 'x' } }, 'innocent'),
    ]
    await boxes.call('POST', `/containers/${strangers[3]}/rename?name=leasehold-${request.ref}-2`)
    const { found, contradictions } = await find(request.ref)
    expect(found.map((one) => one.resource)).toEqual([resource])
    expect(contradictions.map((one) => one.nativeId).toSorted()).toEqual(
      [strangers[1], strangers[2]].map((id) => `container:${id?.slice(0, 12)}`).toSorted(),
    )
    await boxes.call('DELETE', `/containers/${strangers[2]}?force=1`)
    expect((await remove(resource)).kind).toBe('gone')
    expect((await read(resource)).kind).toBe('absent')
    for (const id of [strangers[0], strangers[1], strangers[3]]) expect(await boxes.exists(id as string)).toBe(true)
    expect(await boxes.exists(container)).toBe(false)
  })

  it('does not take a container for its own that was made again with everything of it, once its own was recorded and is gone', async () => {
    const { resource, container } = await boxes.make()
    const now = await boxes.call<{ Config: { Labels: unknown }; HostConfig: Record<string, unknown> }>(
      'GET',
      `/containers/${container}/json`,
    )
    await boxes.call('DELETE', `/containers/${container}?force=1`)
    const again = await boxes.stranger({ Labels: now.Config.Labels, HostConfig: now.HostConfig }, resource.nativeId)
    expect(await read(resource)).toMatchObject({
      kind: 'present',
      found: { existence: 'going' },
      contradictions: [{ nativeId: `container:${again.slice(0, 12)}` }],
    })
    expect((await remove(resource)).kind).toBe('blocked')
    expect(await boxes.exists(again)).toBe(true)
  })

  it.each(['networks/create', 'volumes/create', 'containers/create', 'containers/[^/]+/start', 'containers/[^/]+/exec'])(
    'that is half made is taken back, or found and taken back later: %s fails before and after the deed (leases R7)',
    async (path) => {
      for (const afterwards of [false, true]) {
        const request = createRequest(boxes.provider, boxes.config)
        boxes.proxy.lies.push({ when: new RegExp(`POST \\S*/${path}`), status: 500, body: { message: 'out of luck' }, afterwards })
        const outcome = await create(request)
        boxes.proxy.lies.splice(0)
        expect(outcome.kind).not.toBe('created')
        const { found } = await find(request.ref)
        if (outcome.kind === 'rejected') expect([found, await boxes.ofRef(request.ref)]).toEqual([[], none])
        for (const { resource, existence } of found) {
          expect(existence).toBe('going')
          if (outcome.kind === 'uncertain') expect(outcome.resource?.immutableId).toBe(resource.immutableId)
          expect((await remove(resource)).kind).toBe('gone')
        }
        expect(await boxes.ofRef(request.ref)).toEqual(none)
      }
    },
  )

  it('whose maker died after any step is found as not whole, under the identity that it would have had, and goes (orphans R7)', async () => {
    const partOf = async (steps: 1 | 2) => {
      const request = createRequest(boxes.provider, boxes.config)
      const { Id: network } = await boxes.call<{ Id: string }>('POST', '/networks/create', {
        Name: partName(request),
        Labels: labelsOf(request),
      })
      if (steps > 1) await boxes.call('POST', '/volumes/create', { Name: partName(request), Labels: labelsOf(request, network) })
      return { request, network }
    }
    for (const steps of [1, 2] as const) {
      const { request, network } = await partOf(steps)
      const { found } = await find(request.ref)
      expect(found).toMatchObject([{ resource: { immutableId: network }, existence: 'going', providerState: 'remains' }])
      // A create with the same token goes on where the other stopped.
      expect(created(await create(request)).immutableId).toBe(network)
      expect((await remove(found[0]?.resource as ResourceIdentity)).kind).toBe('gone')
      expect(await boxes.ofRef(request.ref)).toEqual(none)
    }
  })

  it('has one network at its end, also where two creates with one token made one each; a left one goes with the box', async () => {
    const { request, resource } = await boxes.make()
    // As an Engine before API 1.44 lets a second one be made in a race.
    const extra = await boxes.call<{ Id: string }>('POST', '/networks/create', {
      Name: partName(request),
      CheckDuplicate: false,
      Labels: labelsOf(request),
    })
    expect((await find(request.ref)).found.map((one) => one.resource)).toEqual([resource])
    expect(created(await create(request))).toEqual(resource)
    expect((await remove(resource)).kind).toBe('gone')
    expect((await boxes.parts()).networks).not.toContain(extra.Id)
    expect(await boxes.ofRef(request.ref)).toEqual(none)
  })

  it('takes nothing that has its names already and is of others', async () => {
    const request = createRequest(boxes.provider, boxes.config)
    const taken = await boxes.stranger({}, `leasehold-${request.ref}-1`)
    expect(await create(request)).toMatchObject({ kind: 'rejected', code: 'name_taken' })
    expect(await boxes.ofRef(request.ref)).toEqual(none)
    expect(await boxes.exists(taken)).toBe(true)
  })

  const under = (order: number) => ({ ...context(), stands: () => true, order })

  it('ends itself at its maximum lifetime, and at another once its clock was moved', async () => {
    const [short, long] = [await boxes.make({ maximumLifetimeSeconds: 1 }), await boxes.make({ maximumLifetimeSeconds: 600 })]
    const ended = (container: string) => async () => (await stateOf(container)).State.Status === 'exited'
    await until('it has ended', ended(short.container), 60_000)
    expect(await read(short.resource)).toMatchObject({ kind: 'present', found: { existence: 'going', providerState: 'exited' } })
    await expect(boxes.provider.rearm?.(short.resource, 600, boxes.config, under(1))).rejects.toThrow(/does not run/)
    expect((await stateOf(long.container)).State.Status).toBe('running')
    await boxes.provider.rearm?.(long.resource, 900, boxes.config, under(3))
    // What was asked for an earlier holder comes too late; for the same one it may be asked again.
    await expect(boxes.provider.rearm?.(long.resource, 1, boxes.config, under(2))).rejects.toThrow(/later holder/)
    await expect(boxes.provider.rearm?.(long.resource, 1, boxes.config, { ...under(3), stands: () => false })).rejects.toThrow(/lost it/)
    expect((await stateOf(long.container)).State.Status).toBe('running')
    await boxes.provider.rearm?.(long.resource, 1, boxes.config, under(3))
    await until('it has ended too', ended(long.container), 60_000)
  })

  it('has its secrets where its commands find them, and nowhere else', async () => {
    const canary = "can'ary-4711"
    const { container } = await boxes.make({ secretEnvironment: { LEASEHOLD_LEASE_TOKEN: canary } })
    const shown = [
      await boxes.call('GET', `/containers/${container}/json`),
      await boxes.call('GET', `/containers/${container}/top`),
      await boxes.call('GET', `/containers/${container}/changes`),
      boxes.proxy.seen,
    ]
    expect(JSON.stringify(shown)).not.toContain('ary-4711')
    expect(await boxes.sh(container, '. /.leasehold/env; echo "$LEASEHOLD_LEASE_TOKEN"')).toBe(canary)
    // In memory: an image that is made of the container has none of it.
    const { Id: image } = await boxes.call<{ Id: string }>('POST', `/commit?container=${container}`)
    const copy = await boxes.stranger({ Image: image })
    expect(await boxes.sh(copy, 'ls -A /.leasehold; echo end')).toBe('end')
    await boxes.call('DELETE', `/containers/${copy}?force=1`)
    await boxes.call('DELETE', `/images/${image}?force=1`)
  })

  it('is refused with what to do where its image is missing or has no shell, and leaves nothing', async () => {
    const [missing, bare] = [
      { ...boxes.config, image: 'no/such:1' },
      { ...boxes.config, image: 'leasehold-test-bare:1' },
    ]
    const one = await boxes.stranger()
    const request = createRequest(boxes.provider, missing)
    expect(await create(request)).toMatchObject({
      kind: 'rejected',
      code: 'image_missing',
      message: expect.stringContaining('docker pull no/such:1'),
    })
    await boxes.sh(one, 'rm /bin/sh')
    const { Id: image } = await boxes.call<{ Id: string }>('POST', `/commit?container=${one}&repo=leasehold-test-bare&tag=1`)
    const other = createRequest(boxes.provider, bare)
    expect(await create(other)).toMatchObject({ kind: 'rejected', code: 'box_start_failed', message: expect.stringContaining('/bin/sh') })
    for (const { ref } of [request, other]) expect(await boxes.ofRef(ref)).toEqual(none)
    await boxes.call('DELETE', `/images/${image}?force=1`)
    const checks = await boxes.provider.doctor(missing, context())
    expect(checks.find((check) => check.name === 'docker: image')).toMatchObject({
      level: 'error',
      remedy: expect.stringContaining('docker pull no/such:1'),
    })
  })

  it('goes with the volumes that its image asks for', async () => {
    const one = await boxes.stranger()
    const { Id: image } = await boxes.call<{ Id: string }>(
      'POST',
      `/commit?container=${one}&repo=leasehold-test-volumes&tag=1&changes=VOLUME%20/data`,
    )
    const request = createRequest(boxes.provider, { ...boxes.config, image: 'leasehold-test-volumes:1' })
    const resource = created(await create(request))
    const { Mounts: mounts } = await boxes.call<{ Mounts: { Name: string }[] }>('GET', `/containers/${resource.facts['container']}/json`)
    const names = mounts.map((mount) => mount.Name)
    expect(names).toHaveLength(2)
    const wiped = await boxes.provider.wipe?.clear(resource, boxes.config, { ...context(), stands: () => true })
    expect(wiped).toMatchObject({ kind: 'failed' })
    expect((await remove(resource)).kind).toBe('gone')
    expect((await boxes.parts()).volumes.filter((name) => names.includes(name))).toEqual([])
    await boxes.call('DELETE', `/images/${image}?force=1`)
  })

  it("is not wiped once its holder changed the image's own files, and is shown as it is", async () => {
    const { resource, container } = await boxes.make()
    const wipe = boxes.provider.wipe
    await boxes.sh(container, 'echo planted >> /etc/notes; touch /bin/planted')
    const seen = await wipe?.leftovers(resource, boxes.config, context())
    expect(seen).toMatchObject({ kind: 'complete', left: expect.arrayContaining(['/bin/planted', '/etc/notes']) })
    expect(await wipe?.clear(resource, boxes.config, { ...context(), stands: () => true })).toMatchObject({ kind: 'failed' })
  })

  it('with a root that is read only takes nothing but in its volume and in memory, and can always be wiped', async () => {
    const config = { ...boxes.config, root: 'readonly' }
    const resource = created(await create(createRequest(boxes.provider, config)))
    const container = resource.facts['container'] as string
    expect(await boxes.sh(container, 'touch /bin/planted 2> /dev/null || echo refused; echo a > /tmp/a; echo b > /work/b')).toBe('refused')
    expect(await boxes.provider.wipe?.leftovers(resource, config, context())).toMatchObject({ kind: 'complete', left: ['/work/b'] })
    expect(await boxes.provider.wipe?.clear(resource, config, { ...context(), stands: () => true })).toEqual({ kind: 'wiped' })
    expect(await boxes.provider.wipe?.leftovers(resource, config, context())).toMatchObject({ kind: 'complete', left: [] })
    expect(await boxes.sh(container, 'cat /tmp/a 2> /dev/null; echo end')).toBe('end')
  })

  it('of another Engine is never called absent by the one that answers (leases R86)', async () => {
    const { resource } = await boxes.make()
    const elsewhere = { ...resource, scope: `${resource.scope}-other` as ResourceIdentity['scope'] }
    expect((await read(elsewhere)).kind).toBe('unknown')
    expect((await remove(elsewhere)).kind).toBe('unknown')
    // Nor because of a 404 that is not said of the object.
    boxes.proxy.lies.push({ when: /GET \S*\/(containers|networks|volumes)\/[^?]/, status: 404, body: { message: 'page not found' } })
    expect((await read({ ...resource, immutableId: '0'.repeat(64), facts: {} })).kind).toBe('unknown')
  })
})
