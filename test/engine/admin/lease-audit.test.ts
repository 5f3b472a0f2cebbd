import { afterEach, expect, test } from 'vitest'
import { addFreeze, auditLeases, type AuditInput } from '../../../src/engine/admin/index.ts'
import { createLease, releaseLease, settledLease } from '../../../src/engine/leases/index.ts'
import { gate } from '../../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { actor, openOffice, root, type Office } from './support.ts'

eachStore('lease-audit', (open) => {
  let office: Office
  afterEach(() => office.engine.stop(1_000))
  const running = async (): Promise<Office> => {
    office = await openOffice(await open())
    await office.engine.start()
    return office
  }
  const active = async (input: Parameters<typeof createLease>[2] = {}) =>
    settledLease(office.context, (await createLease(office.context, root, input)).lease.id, 20_000)
  const audit = (input: Partial<AuditInput> = {}) => auditLeases(office.context, root, { limit: 100, ...input })

  test('lists without `state` exactly the leases with a debt, with what they owe (leases R49)', async () => {
    const { context, provider } = await running()
    await active({ slug: 'healthy' })
    const failing = await active({ slug: 'failing' })
    const done = await active({ slug: 'done' })
    await releaseLease(context, root, done.id, {})
    await until(async () => (await audit({ state: ['released'] }))[0]?.cloudStatus === 'missing', 'the box of that one is gone')
    await until(async () => (await audit()).length === 0, 'nothing is owed any more')
    provider.onRemove = () => ({ kind: 'denied', permission: 'boxes:delete' })
    await releaseLease(context, root, failing.id, {})
    await until(async () => (await audit())[0]?.cleanupAttempts === 1, 'the removal failed')
    expect(await audit()).toMatchObject([
      {
        leaseID: failing.id,
        slug: 'failing',
        state: 'released',
        debt: ['cleanup-error', 'cleanup-open'],
        cleanupError: expect.stringContaining('boxes:delete'),
        cleanupRetryAt: expect.any(String),
        cloudID: failing.cloudID,
        cloudStatus: 'found',
        cloudState: 'running',
      },
    ])
  })

  test('with `state` lists the leases of that state, owing or not (leases R49)', async () => {
    const { context } = await running()
    const lease = await active({ keep: true })
    await active({ project: 'other' })
    expect((await audit({ state: ['active'] })).map((row) => row.debt)).toEqual([['state'], ['state']])
    expect(await audit({ state: ['active'], project: 'default' })).toHaveLength(1)
    expect(await audit({ state: ['active'], provider: 'process' })).toHaveLength(2)
    await expect(audit({ state: ['active'], provider: 'aws' })).rejects.toMatchObject({ code: 'bad_request' })
    expect(await auditLeases(context, actor('admin', 'other'), { state: ['active'], limit: 100 })).toMatchObject([{ project: 'other' }])
    await expect(audit({ state: ['gone'] })).rejects.toMatchObject({ code: 'bad_request' })
    await releaseLease(context, root, lease.id, { delete: false })
    expect(await audit({ state: ['released'] })).toMatchObject([{ leaseID: lease.id, cloudStatus: 'found', debt: ['state'] }])
  })

  test('a box that a release kept is a debt once its reminder is past (leases R37)', async () => {
    const { context } = await running()
    await setClock(context.store, await context.store.now())
    const lease = await active({ keep: true })
    await releaseLease(context, root, lease.id, {})
    expect(await audit()).toEqual([])
    await advance(context.store, 86_400_000)
    expect(await audit()).toMatchObject([{ leaseID: lease.id, debt: ['retained-overdue'], cloudStatus: 'found' }])
  })

  test('a provider that can not be read gives `error`, never `missing`, and takes nothing from the other rows (leases R50)', async () => {
    const { provider } = await running()
    const [bad, gone, good] = [await active(), await active(), await active()]
    provider.boxes.delete(gone.cloudID as string)
    const going = await active()
    const box = provider.boxes.get(going.cloudID as string)
    if (box) provider.boxes.set(going.cloudID as string, { ...box, existence: 'going', providerState: 'shutting-down' })
    for (const failure of [() => ({ kind: 'unknown', error: 'timed out' }) as const, () => Promise.reject(new Error('connection reset'))]) {
      provider.onRead = (resource) => (resource.nativeId === bad.cloudID ? failure() : undefined)
      const rows = new Map((await audit({ state: ['active'] })).map((row) => [row.leaseID, row]))
      expect(rows.get(bad.id)).toMatchObject({ cloudStatus: 'error', message: expect.stringMatching(/timed out|connection reset/) })
      expect(rows.get(gone.id)).toMatchObject({ cloudStatus: 'missing', message: 'not in the list' })
      expect(rows.get(good.id)).toMatchObject({ cloudStatus: 'found', cloudState: 'running' })
      expect(rows.get(going.id)).toMatchObject({ cloudStatus: 'missing', cloudState: 'shutting-down' })
    }
  })

  test('a lease without a recorded identity is looked for by its ref: found, missing, or error where the look was not complete', async () => {
    const { context, provider } = await running()
    // No removal ends the state that is looked at here.
    await addFreeze(context, root, { reason: 'a look' })
    const hanging = gate()
    provider.onCreate = async (request) => {
      provider.make(request)
      await hanging.promise
      return undefined
    }
    const { lease } = await createLease(context, root, {})
    await until(() => provider.boxes.size === 1, 'the box is made, and its answer has not come')
    const only = async () => (await audit({ state: ['provisioning'] }))[0]
    expect(await only()).toMatchObject({ leaseID: lease.id, cloudID: null, cloudStatus: 'found' })
    provider.onFind = () => ({ kind: 'incomplete', why: 'one page failed' })
    expect(await only()).toMatchObject({ cloudStatus: 'error', message: 'one page failed' })
    provider.onFind = () => ({ kind: 'complete', found: [], contradictions: [] })
    expect(await only()).toMatchObject({ cloudStatus: 'missing' })
    provider.onFind = undefined
    hanging.open()
  })

  test('reads several at a time, and not too many', async () => {
    const { provider } = await running()
    for (let i = 0; i < 12; i++) await createLease(office.context, root, {})
    await until(async () => (await audit({ state: ['active'] })).length === 12, 'all are active')
    let [now, most] = [0, 0]
    const reached = gate()
    provider.onRead = async () => {
      now++
      most = Math.max(most, now)
      if (now === 8) reached.open()
      await reached.promise
      now--
      return undefined
    }
    expect(await audit({ state: ['active'] })).toHaveLength(12)
    expect(most).toBe(8)
  })
})
