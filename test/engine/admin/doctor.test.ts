import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { addFreeze, runDoctor } from '../../../src/engine/admin/index.ts'
import { insertBackend, markBackendDeleted } from '../../../src/store/backends.ts'
import { createLease, releaseLease, settledLease } from '../../../src/engine/leases/index.ts'
import { addStop } from '../../../src/store/stops.ts'
import type { DoctorCheck } from '../../../src/model/wire.ts'
import { testScope } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { until } from '../../support/until.ts'
import { actor, openOffice, root, type Office } from './support.ts'

eachStore('the doctor', (open) => {
  let office: Office
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-doctor-'))
  afterEach(async () => {
    await office.engine.stop(1_000)
    rmSync(folder, { recursive: true, force: true })
  })
  const levels = (checks: readonly DoctorCheck[]): Record<string, string> =>
    Object.fromEntries(checks.map((check) => [check.name, check.level]))

  test('finds nothing wrong where nothing is, and gives a remedy for everything that is', async () => {
    office = await openOffice(await open())
    const { context, provider } = office
    await office.engine.start()
    provider.doctor = async () => [{ name: 'process: boxes', level: 'ok', message: 'fine', remedy: null }]
    chmodSync(folder, 0o700)
    const well = await runDoctor(context, root, folder)
    // The test's own database may be fast rather than durable; what is said of it is looked at in the next test.
    const { database: _, ...others } = levels(well)
    expect(others).toEqual({
      'coordinator data folder': 'ok',
      'process: boxes': 'ok',
      'process: sweep mode': 'ok',
      clocks: 'ok',
      removals: 'ok',
      findings: 'ok',
      freezes: 'ok',
      installation: 'ok',
    })

    const { lease } = await createLease(context, root, {})
    await settledLease(context, lease.id, 20_000)
    provider.onRemove = () => ({ kind: 'denied', permission: 'boxes:delete' })
    await releaseLease(context, root, lease.id, {})
    await until(
      async () =>
        (await context.store.read((session) => session.db.selectFrom('removals').selectAll().where('failures', '>', 0).execute())).length >
        0,
      'the removal failed',
    )
    await context.store.write((tx) => tx.db.updateTable('removals').set({ failures: 3 }).execute())
    // Configured alike, both backends are looked at once.
    await context.store.write((tx) => tx.db.updateTable('backends').set({ config: '{}' }).execute())
    await context.store.write((tx) => tx.db.updateTable('replicas').set({ skew_ms: 0 }).execute())
    await addFreeze(context, root, { reason: 'outage' })
    chmodSync(folder, 0o755)
    provider.doctor = async () => {
      throw new Error('no answer from the far end')
    }
    const ill = await runDoctor(context, root, folder)
    expect(levels(ill)).toMatchObject({
      'coordinator data folder': 'warning',
      'process: backend': 'error',
      removals: 'error',
      freezes: 'warning',
    })
    for (const check of ill.filter((one) => one.level !== 'ok')) expect(check.remedy, check.name).toBeTruthy()
    expect(ill.find((check) => check.name === 'process: backend')?.message).toContain('default/local, other/local')
  })

  test('where removals are stopped because the database may be a copy, no check says that they run', async () => {
    office = await openOffice(await open())
    const { context } = office
    await office.engine.start()
    const messages = async () => (await runDoctor(context, root, null)).filter((one) => one.name === 'freezes').map((one) => one.message)
    expect(await messages()).toEqual(['removals run in every scope'])
    await context.store.write((tx) => addStop(tx, { scope: '*', code: 'elsewhere', why: 'it may be a copy', evidence: '{}', epoch: null }))
    expect(await messages()).toEqual(['nobody froze anything; removals are stopped all the same, see installation'])
  })

  test('reads from the database itself whether commits are flushed', async () => {
    office = await openOffice(await open())
    const { store } = office.context
    const [check] = await runDoctor(office.context, root, null)
    const flushed =
      store.dialect === 'sqlite' ||
      ((
        await store.read((session) =>
          session.db.selectNoFrom((eb) => eb.fn<string>('current_setting', [eb.val('fsync')]).as('fsync')).executeTakeFirst(),
        )
      )?.fsync ?? 'on') === 'on'
    expect(check).toMatchObject({ name: 'database', level: flushed ? 'ok' : 'error' })
    store.read = store.write = async () => {
      throw new Error('connection refused')
    }
    const down = await runDoctor(office.context, root, null)
    for (const method of ['read', 'write']) Reflect.deleteProperty(store, method)
    expect(down).toMatchObject([{ name: 'database', level: 'error', message: expect.stringContaining('connection refused') }])
  })

  test('looks once at backends that are configured alike, at each of the others, and at own ones only for an operator of one project', async () => {
    office = await openOffice(await open())
    const seen: unknown[] = []
    office.provider.doctor = async (config) => {
      seen.push(config)
      return []
    }
    await office.context.store.write(async (tx) => {
      await tx.db.updateTable('backends').set({ config: '{}' }).execute()
      await insertBackend(tx, {
        project: 'other',
        name: 'special',
        provider: 'process',
        config: '{"mode":"x"}',
        scope: testScope,
        is_default: 0,
      })
    })
    await runDoctor(office.context, root, null)
    expect(seen).toEqual([{}, { mode: 'x' }])
    seen.length = 0
    // Written out, the defaults are what `{}` means.
    office.provider.parseConfig = (config) => ({ mode: 'x', ...(config as Record<string, unknown>) })
    office.provider.doctor = async (config) => {
      seen.push(config)
      return [{ name: 'process: boxes', level: 'ok', message: 'fine', remedy: null }]
    }
    const checks = await runDoctor(office.context, root, null)
    expect(seen).toHaveLength(1)
    expect(checks.filter(({ name }) => name === 'process: boxes')).toMatchObject([
      { message: 'backend default/local, other/local, other/special: fine' },
    ])
    await office.context.store.write((tx) => markBackendDeleted(tx, 'other', 'special'))
    expect((await runDoctor(office.context, root, null)).find(({ name }) => name === 'process: boxes')?.message).toBe(
      'backend default/local, other/local: fine',
    )
    seen.length = 0
    await runDoctor(office.context, actor('operator', 'default'), null)
    expect(seen).toEqual([{}])
  })
})
