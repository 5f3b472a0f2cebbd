import { afterEach, expect, test } from 'vitest'
import {
  addBackend,
  addFreeze,
  addHold,
  listFreezes,
  listHolds,
  removeFreeze,
  removeHold,
  type HoldInput,
} from '../../../src/engine/admin/index.ts'
import { createLease, getLease, releaseLease, settledLease } from '../../../src/engine/leases/index.ts'
import { insertBackend } from '../../../src/store/backends.ts'
import { testScope } from '../../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { actor, eventsOf, openOffice, otherScope, root, type Office } from './support.ts'

const mine = actor('operator', 'default')

eachStore('holds and freezes', (open) => {
  let office: Office
  afterEach(() => office.engine.stop(1_000))
  const running = async (): Promise<Office> => {
    office = await openOffice(await open())
    await office.engine.start()
    return office
  }
  const active = async (project = 'default') => {
    const { lease } = await createLease(office.context, root, { project })
    return settledLease(office.context, lease.id, 20_000)
  }
  const cleanup = async (id: string) => (await getLease(office.context, root, id)).cleanup
  const gone = (id: string) => until(async () => (await cleanup(id)).state === 'gone', `${id} is gone`)

  test.each(['lease', 'instance', 'resource', 'project', 'scope'] as const)(
    'a hold on the %s keeps a released box, and once it is removed the box goes at once',
    async (targetType) => {
      const { context, provider } = await running()
      const lease = await active()
      const targets = {
        lease: lease.slug,
        instance: lease.ref,
        resource: `process/here/${lease.cloudID}`,
        project: 'default',
        scope: 'scripted:one',
      }
      const hold = await addHold(context, root, { targetType, targetID: targets[targetType], reason: ' a look inside ' })
      expect(hold).toMatchObject({ targetType, reason: 'a look inside', createdBy: 'root', until: null, removedAt: null })
      if (targetType === 'lease') expect(hold.targetID).toBe(lease.id)
      if (targetType === 'instance') expect(hold.targetID).toBe(lease.instanceID)
      await releaseLease(context, root, lease.id, {})
      await until(async () => (await cleanup(lease.id)).state === 'held', 'the removal is held')
      expect(await cleanup(lease.id)).toMatchObject({ heldBy: `hold ${hold.id}` })
      expect(provider.count('remove')).toBe(0)
      expect((await removeHold(context, root, hold.id)).removedAt).not.toBeNull()
      await gone(lease.id)
      expect(provider.count('remove')).toBe(1)
    },
  )

  test('a hold on another lease keeps nothing here', async () => {
    const { context } = await running()
    const [held, free] = [await active(), await active()]
    await addHold(context, root, { targetType: 'lease', targetID: held.id, reason: 'that one' })
    for (const lease of [held, free]) await releaseLease(context, root, lease.id, {})
    await gone(free.id)
    await until(async () => (await cleanup(held.id)).state === 'held', 'the other is held')
  })

  test.each([undefined, 'scripted:one'])('a freeze of %s stops removals, creates go on, and lifting it lets the box go', async (scope) => {
    const { context, provider } = await running()
    const lease = await active()
    await addFreeze(context, root, { reason: 'outage', ...(scope === undefined ? {} : { scope }) })
    await releaseLease(context, root, lease.id, {})
    await until(async () => (await cleanup(lease.id)).state === 'held', 'the removal is held')
    expect((await active()).state).toBe('active')
    expect(provider.count('remove')).toBe(0)
    expect(await removeFreeze(context, root, scope ?? '*', 'over')).toMatchObject({ reason: 'outage' })
    await gone(lease.id)
    await expect(removeFreeze(context, root, scope ?? '*')).rejects.toMatchObject({ code: 'not_found' })
  })

  test('a target must be there, and of the project of the one who asks: else it is not found', async () => {
    const { context } = await running()
    const [here, there] = [await active(), await active('other')]
    const missing: HoldInput[] = [
      { targetType: 'lease', targetID: 'lh_0123456789ab', reason: 'r' },
      { targetType: 'instance', targetID: 'in_0', reason: 'r' },
      { targetType: 'project', targetID: 'nobody', reason: 'r' },
      { targetType: 'scope', targetID: 'aws:1', reason: 'r' },
    ]
    for (const input of missing) await expect(addHold(context, root, input)).rejects.toMatchObject({ code: 'not_found' })
    const foreign: HoldInput[] = [
      { targetType: 'lease', targetID: there.id, reason: 'r' },
      { targetType: 'instance', targetID: there.instanceID, reason: 'r' },
      { targetType: 'resource', targetID: `process/here/${there.cloudID}`, reason: 'r' },
      { targetType: 'project', targetID: 'other', reason: 'r' },
      { targetType: 'scope', targetID: otherScope, reason: 'r' },
    ]
    for (const input of foreign) {
      await expect(addHold(context, mine, input), input.targetType).rejects.toMatchObject({ code: 'not_found' })
      expect((await addHold(context, root, input)).targetType).toBe(input.targetType)
    }
    expect(await listHolds(context, mine)).toEqual([])
    const own = await addHold(context, mine, { targetType: 'resource', targetID: `process/here/${here.cloudID}`, reason: 'r' })
    expect((await listHolds(context, mine)).map((hold) => hold.id)).toEqual([own.id])
    expect(await listHolds(context, root)).toHaveLength(foreign.length + 1)
    const [theirs] = await listHolds(context, actor('operator', 'other'))
    await expect(removeHold(context, mine, theirs?.id as string)).rejects.toMatchObject({ code: 'not_found' })
  })

  test('what nobody has seen can be held by name only where it may still come, and the answer says so', async () => {
    const { context } = await running()
    const here = await active()
    const on = (targetID: string) => addHold(context, root, { targetType: 'resource', targetID, reason: 'r' })
    const refused = [
      ['proces/here/x', 'targetID: no provider "proces" is known here; there is process'],
      ['process/her/x', 'targetID: provider "process" has no location "her" here; there is here'],
      ['process/x', 'targetID: "process/x" names no resource; write provider/location/native-id'],
    ] as const
    for (const [target, message] of refused) await expect(on(target), target).rejects.toMatchObject({ code: 'bad_request', message })
    expect(await listHolds(context, root)).toEqual([])
    expect((await on('process/here/not-made-yet')).warning).toMatch(/^nothing here has ever seen process\/here\/not-made-yet/)
    // The twin: of what an attempt recorded there is nothing to say.
    expect((await on(`process/here/${here.cloudID}`)).warning).toBeUndefined()
  })

  test('an operator of one project stops a scope of its own, but not one that others use, and not every scope', async () => {
    const { context } = await running()
    expect(await addFreeze(context, mine, { scope: testScope, reason: 'mine alone' })).toMatchObject({ scope: testScope })
    await removeFreeze(context, mine, testScope)
    await context.store.write(async (tx) => {
      await insertBackend(tx, { project: 'other', name: 'guest', provider: 'process', config: '{}', scope: testScope, is_default: 0 })
    })
    await expect(addFreeze(context, mine, { scope: testScope, reason: 'r' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(addHold(context, mine, { targetType: 'scope', targetID: testScope, reason: 'r' })).rejects.toMatchObject({
      code: 'forbidden',
    })
    await expect(addFreeze(context, mine, { scope: otherScope, reason: 'r' })).rejects.toMatchObject({ code: 'not_found' })
    await expect(addFreeze(context, mine, { reason: 'r' })).rejects.toMatchObject({ code: 'forbidden' })
    await addFreeze(context, root, { scope: testScope, reason: 'all of it' })
    await addFreeze(context, root, { scope: otherScope, reason: 'theirs' })
    await addFreeze(context, root, { reason: 'everything' })
    for (const scope of [testScope, '*']) await expect(removeFreeze(context, mine, scope)).rejects.toMatchObject({ code: 'forbidden' })
    expect((await listFreezes(context, mine)).map((freeze) => freeze.scope)).toEqual(['*', testScope])
    expect(await listFreezes(context, root)).toHaveLength(3)
    // A draining backend still counts: what it holds is removed in that account.
    await context.store.write((tx) => tx.db.updateTable('backends').set({ deleted_at: tx.now }).where('name', '=', 'guest').execute())
    await expect(addFreeze(context, mine, { scope: testScope, reason: 'r' })).rejects.toMatchObject({ code: 'forbidden' })
  })

  test('a hold ends by itself when its time is over', async () => {
    const { context } = await running()
    await setClock(context.store, await context.store.now())
    const lease = await active()
    const hold = await addHold(context, root, { targetType: 'lease', targetID: lease.id, reason: 'an hour', durationSeconds: 3600 })
    expect(Date.parse(hold.until as string) - Date.parse(hold.createdAt)).toBe(3_600_000)
    await advance(context.store, 3_599_999)
    expect(await listHolds(context, root)).toHaveLength(1)
    await advance(context.store, 1)
    expect(await listHolds(context, root)).toEqual([])
    expect(await listHolds(context, root, true)).toHaveLength(1)
  })

  test('every stop and every start leaves an event, and a record in the audit that is kept for ever', async () => {
    const { context } = await running()
    const hold = await addHold(context, root, { targetType: 'project', targetID: 'default', reason: 'why' })
    await removeHold(context, root, hold.id)
    await removeHold(context, root, hold.id)
    await addFreeze(context, root, { reason: 'because' })
    await removeFreeze(context, root, '*', 'over')
    for (const code of ['hold.added', 'hold.removed', 'freeze.added', 'freeze.removed'])
      expect(await eventsOf(context.store, code), code).toHaveLength(1)
    const audit = await context.store.read((session) =>
      session.db.selectFrom('audit').selectAll().where('kind', '=', 'operator').orderBy('id').execute(),
    )
    expect(audit.map((row) => [row.actor, (JSON.parse(row.body) as { action: string }).action])).toEqual([
      ['root', 'hold.add'],
      ['root', 'hold.remove'],
      ['root', 'freeze'],
      ['root', 'unfreeze'],
    ])
    expect(JSON.parse(audit[3]?.body ?? '{}')).toMatchObject({ reason: 'over' })
  })

  test('a scope that only a new backend brought in can be frozen', async () => {
    const { context, provider } = await running()
    provider.scope = async () => ({ kind: 'known', scope: 'scripted:three' as typeof testScope, description: 'third' })
    await expect(addFreeze(context, root, { scope: 'scripted:three', reason: 'r' })).rejects.toMatchObject({ code: 'not_found' })
    await addBackend(context, root, { name: 'third', provider: 'process' })
    expect(await addFreeze(context, root, { scope: 'scripted:three', reason: 'r' })).toMatchObject({ scope: 'scripted:three' })
  })
})
