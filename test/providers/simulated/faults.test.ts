/** What each fault does to each call, and that without it the call goes through. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { effects, faultProblem } from '../../../src/providers/simulated/faults.ts'
import { operations } from '../../../src/providers/simulated/words.ts'
import { context, createRequest } from '../../conformance/request.ts'
import { type Account, openAccount } from './support.ts'

let account: Account
beforeEach(() => {
  account = openAccount()
})
afterEach(() => account.dispose())

const create = (request = createRequest(account.provider, account.config), signal = context().signal) =>
  account.provider.create(request, { signal })
const find = (ref: string) => account.provider.find(ref as never, account.config, context())
const foundBy = async (ref: string): Promise<string[]> => {
  const outcome = await find(ref)
  return outcome.kind === 'complete' ? outcome.found.map((one) => one.resource.nativeId) : [outcome.kind]
}

describe('a create', () => {
  it('that fails before it does anything is uncertain, and made nothing', async () => {
    account.fault('create', 'error-before')
    expect(await create()).toMatchObject({ kind: 'uncertain', resource: null })
    expect(account.cloud.all()).toEqual([])
  })

  it('that answers an error and made it all the same is uncertain, and is found by its ref (case B15, orphans 2)', async () => {
    account.fault('create', 'error-after', { count: 1 })
    const request = createRequest(account.provider, account.config)
    expect(await create(request)).toMatchObject({ kind: 'uncertain', resource: null })
    expect(account.cloud.all().map((one) => one.kind)).toEqual(['machine', 'disk', 'nic', 'ip'])
    const [id] = await foundBy(request.ref)
    // Asked again with the same token it answers with what is there, and makes nothing.
    expect(await create(request)).toMatchObject({ kind: 'created', resource: { nativeId: id } })
    expect(account.cloud.all()).toHaveLength(4)
  })

  it('that hangs is waited for as long as a client waits, is uncertain and made nothing', async () => {
    account.fault('create', 'hang')
    expect(await create()).toMatchObject({ kind: 'uncertain' })
    expect(account.clock.slept).toEqual([30_000])
    expect(account.cloud.all()).toEqual([])
  })

  it('that hangs ends when its call is ended', async () => {
    account.fault('create', 'hang')
    account.clock.stuck = true
    const ended = new AbortController()
    const pending = create(createRequest(account.provider, account.config), ended.signal)
    ended.abort()
    expect(await pending).toMatchObject({ kind: 'uncertain' })
  })

  it('that is slow is done so much later', async () => {
    account.fault('create', 'slow', { lengthMs: 20_000 })
    const before = account.clock.now
    expect(await create()).toMatchObject({ kind: 'created', ready: true })
    expect(account.clock.now - before).toBe(20_000)
    expect(account.cloud.all()).toHaveLength(4)
  })

  it('that is slow surfaces although its caller has given up (orphans R40)', async () => {
    account.fault('create', 'slow', { lengthMs: 600_000, count: 1 })
    account.clock.stuck = true
    const ended = new AbortController()
    const request = createRequest(account.provider, account.config)
    const pending = create(request, ended.signal)
    ended.abort()
    expect(await pending).toMatchObject({ kind: 'uncertain', resource: null })
    expect(await foundBy(request.ref)).toEqual([])
    expect(await create(request)).toMatchObject({ kind: 'uncertain', message: expect.stringContaining('under way') })
    account.advance(599)
    expect(await foundBy(request.ref)).toEqual([])
    account.advance(1)
    expect(await foundBy(request.ref)).toHaveLength(1)
    expect((await account.list()).resources.map((one) => one.resource.kind)).toEqual(['machine', 'disk', 'nic', 'ip'])
  })

  it('that lags is read by its id, and listed only later (case I5)', async () => {
    account.fault('create', 'lag', { lengthMs: 90_000 })
    const { request, resource } = await account.make()
    const ids = async () => (await account.list()).resources.map((one) => one.resource.nativeId)
    expect((await account.provider.read(resource, account.config, context())).kind).toBe('present')
    expect([await ids(), await foundBy(request.ref)]).toEqual([[], []])
    account.advance(89)
    expect(await ids()).toEqual([])
    account.advance(1)
    expect(await ids()).toContain(resource.nativeId)
    expect(await foundBy(request.ref)).toEqual([resource.nativeId])
  })

  it.each([
    ['denied', 'permission_denied'],
    ['throttle', 'throttled'],
  ] as const)('that is refused (%s) is rejected and made nothing', async (effect, code) => {
    account.fault('create', effect)
    expect(await create()).toMatchObject({ kind: 'rejected', code })
    expect(account.cloud.all()).toEqual([])
  })

  it('for its rate says so, and when to come again; another refusal says nothing of the rate', async () => {
    account.fault('create', 'throttle', { lengthMs: 30_000, count: 1 })
    account.fault('create', 'denied', { count: 1 })
    expect((await create()).rate).toEqual({ throttled: true, retryAfterMs: 30_000, limit: null, remaining: null, resetMs: null })
    expect((await create()).rate).toBeUndefined()
  })
})

describe('a removal', () => {
  const remove = async (effect: Parameters<Account['fault']>[1] | null, more: Parameters<Account['fault']>[2] = {}) => {
    const { resource } = await account.make()
    if (effect !== null) account.fault('delete', effect, more)
    const outcome = await account.provider.remove(resource, account.config, context())
    return { outcome, stands: account.cloud.get(resource.nativeId) !== null, resource }
  }

  it.each([
    [null, { kind: 'gone' }, false],
    ['ignore', { kind: 'accepted', requestId: expect.stringMatching(/^req-/) }, true],
    ['error-before', { kind: 'unknown' }, true],
    ['error-after', { kind: 'unknown' }, false],
    ['denied', { kind: 'denied', permission: 'simulated:delete:machine' }, true],
    ['throttle', { kind: 'retryLater' }, true],
    ['not-found', { kind: 'unknown' }, true],
    ['hang', { kind: 'unknown' }, true],
  ] as const)('with the fault %s', async (effect, expected, stands) => {
    const answer = await remove(effect)
    expect(answer.outcome).toMatchObject(expected)
    expect(answer.stands).toBe(stands)
  })

  it('that is slow ends so much later, also when nobody waits', async () => {
    const { resource } = await account.make()
    account.fault('delete', 'slow', { lengthMs: 60_000, count: 1 })
    account.clock.stuck = true
    const ended = new AbortController()
    const pending = account.provider.remove(resource, account.config, { signal: ended.signal })
    ended.abort()
    expect((await pending).kind).toBe('unknown')
    account.advance(59)
    expect(await account.provider.read(resource, account.config, context())).toMatchObject({
      kind: 'present',
      found: { existence: 'exists' },
    })
    account.advance(1)
    expect((await account.provider.read(resource, account.config, context())).kind).toBe('absent')
  })
})

describe('an exact read', () => {
  it.each(['error-before', 'error-after', 'denied', 'not-found', 'throttle', 'hang'] as const)(
    'with the fault %s is unknown, and not absent (leases R86)',
    async (effect) => {
      const { resource } = await account.make()
      account.fault('get', effect, { count: 1 })
      expect((await account.provider.read(resource, account.config, context())).kind).toBe('unknown')
      expect((await account.provider.read(resource, account.config, context())).kind).toBe('present')
    },
  )
})

describe('a fault', () => {
  it('strikes as often as it was told, and is no longer listed then', async () => {
    account.fault('create', 'denied', { count: 2 })
    expect([(await create()).kind, (await create()).kind, (await create()).kind]).toEqual(['rejected', 'rejected', 'created'])
    expect(account.cloud.faults()).toEqual([])
  })

  it('without a count strikes until it is cleared', async () => {
    account.fault('create', 'denied')
    for (let time = 0; time < 5; time += 1) expect((await create()).kind).toBe('rejected')
    expect(account.cloud.faults()).toMatchObject([{ remaining: null, struck: 5 }])
    expect(account.cloud.clearFaults()).toBe(1)
    expect((await create()).kind).toBe('created')
  })

  it('strikes only its location and kind', async () => {
    const { resource } = await account.make()
    account.fault('get', 'denied', { location: 'sim-b' })
    account.fault('get', 'denied', { kind: 'disk' })
    expect((await account.provider.read(resource, account.config, context())).kind).toBe('present')
    account.fault('get', 'denied', { location: 'sim-a', kind: 'machine' })
    expect((await account.provider.read(resource, account.config, context())).kind).toBe('unknown')
  })

  it('waits and lies together, but of two lies the older one', async () => {
    account.fault('create', 'slow', { lengthMs: 7000 })
    account.fault('create', 'error-after', { count: 1 })
    account.fault('create', 'denied', { count: 1 })
    expect((await create()).kind).toBe('uncertain')
    expect(account.clock.slept).toEqual([7000])
    expect((await create()).kind).toBe('rejected')
  })

  it('that makes no sense is refused: every combination of call and effect is either struck or refused', () => {
    const spec = { count: null, page: null, location: null, kind: null }
    const length = (effect: (typeof effects)[number]) => (['slow', 'lag'].includes(effect) ? 1000 : null)
    const refused = operations.flatMap((operation) =>
      effects
        .filter((effect) => faultProblem({ ...spec, operation, effect, lengthMs: length(effect) }) !== null)
        .map((effect) => `${operation} ${effect}`),
    )
    expect(refused).toEqual([
      ...['ignore', 'fail-page', 'empty-page', 'repeat-page'].map((effect) => `create ${effect}`),
      'list ignore',
      ...['lag', 'ignore', 'fail-page', 'empty-page', 'repeat-page'].map((effect) => `get ${effect}`),
      ...['lag', 'fail-page', 'empty-page', 'repeat-page'].map((effect) => `delete ${effect}`),
      ...['lag', 'fail-page', 'empty-page', 'repeat-page'].map((effect) => `wipe ${effect}`),
    ])
    expect(faultProblem({ ...spec, operation: 'get', effect: 'slow', lengthMs: null })).toMatch(/needs its length/)
    expect(faultProblem({ ...spec, operation: 'get', effect: 'denied', lengthMs: 5 })).toMatch(/has no length/)
    expect(faultProblem({ ...spec, operation: 'get', effect: 'denied', lengthMs: null, page: 2 })).toMatch(/only a list has pages/)
    expect(() => account.fault('create', 'ignore')).toThrow(/ignore is for delete/)
  })
})
