/** The restore drill: a database that was copied while work went on, started elsewhere. */
import { afterEach, expect, it } from 'vitest'
import {
  adoptInstallation,
  closeRemoval,
  forkInstallation,
  listInstances,
  listRemovals,
  readAudit,
  readInstallationView,
  readStatus,
  requestSweep,
  runDoctor,
} from '../../src/engine/admin/index.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { explainKey } from '../../src/engine/explain/index.ts'
import { createLease, getLease, releaseLease, settledLease } from '../../src/engine/leases/index.ts'
import { readEvents } from '../../src/store/events.ts'
import type { Store } from '../../src/store/store.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { copyDatabase } from '../support/copies.ts'
import type { TestDatabase } from '../support/databases.ts'
import { actor } from './admin/support.ts'
import { ann, leaseOn, leaseWhen, makeEngine, root } from '../support/engine.ts'
import { scriptedProvider, type Scripted } from '../support/scripted-provider.ts'
import { advance, eachStore, setClock } from '../support/stores.ts'
import { sweepsAs } from '../support/sweep-settings.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
const long = { ttlSeconds: 86_400, idleTimeoutSeconds: 86_400 }

eachStore('a copied or restored database', (_open, database) => {
  const undo: (() => Promise<void>)[] = []
  const running: Engine[] = []
  const halt = async (engine: Engine): Promise<void> => {
    running.splice(running.indexOf(engine), 1)
    await engine.stop(0)
  }
  afterEach(async () => {
    await Promise.all(running.splice(0).map((engine) => engine.stop(0)))
    for (const step of undo.splice(0).toReversed()) await step()
  })

  const startOn = async (store: Store, provider: Scripted, mode: 'report' | 'delete' = 'report'): Promise<Engine> => {
    const engine = await makeEngine(store, provider, { sweeps: sweepsAs({ mode }) })
    await store.write((tx) => tx.db.updateTable('backends').set({ is_default: 1 }).where('name', '=', 'local').execute())
    await engine.start()
    running.push(engine)
    return engine
  }
  const copyOf = async (target: string): Promise<Store> => {
    const copy = await copyDatabase(target)
    undo.push(() => copy.drop())
    const store = await copy.open()
    undo.push(() => store.close())
    return store
  }

  interface Drill {
    original: TestDatabase
    provider: Scripted
    /** Active when the copy was made; its idle clock runs on in it. */
    lease: LeaseView
    /** Released when the copy was made, its removal under way. */
    leaving: LeaseView
    store: Store
    engine: Engine
  }
  /** The original has a lease, and one that is being taken back; then there is a copy, and a coordinator on it. */
  const drill = async (mode: 'report' | 'delete' = 'report'): Promise<Drill> => {
    const original = await database()
    const provider = scriptedProvider('process', { writesMac: true })
    const first = await original.open()
    await setClock(first, t0)
    const before = await startOn(first, provider)
    const lease = await leaseOn(before, { ttlSeconds: 3_600, idleTimeoutSeconds: 600 })
    const leaving = await leaseOn(before, long)
    provider.onRemove = () => ({ kind: 'retryLater', why: 'not now', afterSeconds: null })
    await releaseLease(before.context, ann, leaving.id, {})
    await leaseWhen(before, leaving.id, (view) => view.cleanup.state === 'failed')
    await halt(before)
    await first.close()
    provider.onRemove = undefined
    provider.calls.length = 0
    const store = await copyOf(original.target)
    return { original, provider, lease, leaving, store, engine: await startOn(store, provider, mode) }
  }
  const cleanup = async (engine: Engine, lease: LeaseView) => (await getLease(engine.context, root, lease.id)).cleanup
  const events = async (store: Store, code: string) =>
    (await readEvents(store, { project: null, after: 0, limit: 500, target: null })).filter(({ event }) => event.code === code)
  const openFindings = (store: Store) =>
    store.read(({ db }) => db.selectFrom('findings').select(['code', 'target_id']).where('state', '=', 'open').execute())

  it('takes nothing back, neither what was released nor what expires, and goes on with everything else (decisions 6)', async () => {
    const { provider, lease, leaving, store, engine } = await drill()
    await advance(store, 700_000)
    for (const one of [lease, leaving]) await leaseWhen(engine, one.id, (view) => view.cleanup.state === 'held')
    expect((await cleanup(engine, leaving)).heldBy).toMatch(/stop of all removals.*started elsewhere/)
    const { lease: fresh } = await createLease(engine.context, ann, long)
    expect(await settledLease(engine.context, fresh.id, 20_000)).toMatchObject({ state: 'active' })
    await releaseLease(engine.context, ann, fresh.id, {})
    await leaseWhen(engine, fresh.id, (view) => view.cleanup.state === 'held')
    expect(provider.count('remove')).toBe(0)
    expect(provider.boxes.size).toBe(3)
  })

  it('the twin: the same file or database, started again, is no copy, and what was under way is finished', async () => {
    const { original, provider, leaving } = await drill()
    const again = await startOn(await original.open(), provider)
    await advance(again.context.store, 301_000)
    await leaseWhen(again, leaving.id, (view) => view.cleanup.state === 'gone')
    expect(provider.count('remove')).toBe(1)
    expect((await readInstallationView(again.context, root)).stops).toEqual([])
  })

  it('says so: a finding, an event, the status and the doctor (decisions 6)', async () => {
    const { store, engine } = await drill()
    const { installation_id: id } = engine.context.installation
    expect(await openFindings(store)).toEqual([{ code: 'elsewhere', target_id: id }])
    expect((await events(store, 'installation.stopped')).map(({ event }) => event.level)).toEqual(['error'])
    const status = await readStatus(engine.context, root, { version: 'test', expiryPaused: null })
    expect(status.stops).toMatchObject([{ scope: '*', code: 'elsewhere', why: expect.stringMatching(/copied or restored/) as string }])
    expect((await readStatus(engine.context, ann, { version: 'test', expiryPaused: null })).stops).toEqual(status.stops)
    const check = (await runDoctor(engine.context, root, null)).find((one) => one.name === 'installation')
    expect(check).toMatchObject({ level: 'error', remedy: expect.stringMatching(/leasehold installation adopt/) as string })
    // It stands, and is not told again at each start.
    await halt(engine)
    await startOn(store, scriptedProvider('process'))
    expect(await events(store, 'installation.stopped')).toHaveLength(1)
  })

  it('adopted, it goes on with all that it had, in a new epoch, and is at home there (decisions 6)', async () => {
    const { provider, lease, leaving, store, engine } = await drill()
    await advance(store, 700_000)
    for (const one of [lease, leaving]) await leaseWhen(engine, one.id, (view) => view.cleanup.state === 'held')
    const before = await readInstallationView(engine.context, root)
    // Whether a coordinator runs on the other one nobody here can see: without a person's word for it nothing goes on.
    await expect(adoptInstallation(engine.context, root, { reason: 'the other machine is dead' })).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('--original-is-stopped') as string,
    })
    expect(await readInstallationView(engine.context, root)).toEqual(before)
    const after = await adoptInstallation(engine.context, root, { reason: 'the other machine is dead', original: 'stopped' })
    expect(after).toMatchObject({ installation: before.installation, epoch: before.epoch + 1, stops: [], place: before.found })
    for (const one of [lease, leaving]) await leaseWhen(engine, one.id, (view) => view.cleanup.state === 'gone')
    expect(provider.boxes.size).toBe(0)
    expect(await openFindings(store)).toEqual([])
    const [record] = (await readAudit(engine.context, root, { limit: 100 })).filter((one) => one.body['action'] === 'installation-adopt')
    expect(record).toMatchObject({ kind: 'operator', actor: 'root', body: { reason: 'the other machine is dead', epoch: after.epoch } })
    await halt(engine)
    const again = await startOn(store, provider)
    expect((await readInstallationView(again.context, root)).stops).toEqual([])
    await expect(adoptInstallation(again.context, root, { reason: 'again' })).rejects.toMatchObject({ code: 'not_stopped' })
  })

  it('forked, it is another installation: it holds nothing, touches nothing of the old one, and takes back what is its own (decisions 6)', async () => {
    const { provider, lease, leaving, store, engine } = await drill('delete')
    const { installation } = await readInstallationView(engine.context, root)
    const forked = await forkInstallation(engine.context, root, { reason: 'only for trying', when: 'stopped' })
    expect(forked).toMatchObject({ former: [installation], stops: [] })
    expect(forked.installation).not.toBe(installation)
    await engine.forked
    expect(engine.ready()).toBe(false)
    // Until it begins anew it makes nothing under the old name.
    const { lease: early } = await createLease(engine.context, ann, long)
    await halt(engine)
    expect(provider.count('create')).toBe(0)
    provider.calls.length = 0

    const anew = await startOn(store, provider, 'delete')
    await advance(store, 5_000)
    expect(await settledLease(anew.context, early.id, 20_000)).toMatchObject({ state: 'active' })
    for (const one of [lease, leaving])
      expect(await getLease(anew.context, root, one.id)).toMatchObject({ state: one === lease ? 'failed' : 'released' })
    const box = [...provider.boxes.values()].find((one) => one.tags.ref === early.ref)
    expect(box?.tags.installation).toBe(forked.installation)
    const own = await leaseOn(anew, long)
    await releaseLease(anew.context, ann, own.id, {})
    await leaseWhen(anew, own.id, (view) => view.cleanup.state === 'gone')
    for (let round = 0; round < 3; round++) {
      await advance(store, 2_000_000)
      const [sweep] = await requestSweep(anew.context, root, {}, 20_000, new AbortController().signal)
      expect(sweep).toMatchObject({ outcome: 'clean', verdicts: { 'foreign.former-installation': 2 } })
    }
    // Asked for by name, and by whoever made it: it stays with the other one.
    await store.write((tx) =>
      tx.db
        .updateTable('removals')
        .set({ state: 'removing', due_at: tx.now })
        .where('lease_id', '=', leaving.id as never)
        .execute(),
    )
    anew.context.signals.wake('remove')
    await leaseWhen(anew, leaving.id, (view) => view.cleanup.state === 'held')
    expect(provider.count('rearm')).toBe(0)
    expect((await cleanup(anew, leaving)).heldBy).toContain(`it belongs to installation ${installation}`)
    expect(provider.calls.filter((call) => call.op === 'remove').map((call) => call.id)).toEqual([own.cloudID])
    expect(await openFindings(store)).toEqual([])
  })

  it('what a fork leaves behind asks for nobody here: no removal to end, no instance that is ending, no order that would be held for ever (decisions 6)', async () => {
    const { provider, lease, leaving, store, engine } = await drill()
    const { lease: kept } = await createLease(engine.context, ann, long)
    await leaseWhen(engine, kept.id, (view) => view.state === 'active')
    await releaseLease(engine.context, ann, kept.id, { delete: false })
    const { installation } = await readInstallationView(engine.context, root)
    // The twin: before it, one of them asks for a person.
    expect(await listRemovals(engine.context, root, { limit: 10 })).toMatchObject([{ leaseID: leaving.id }])
    await forkInstallation(engine.context, root, { reason: 'only for trying', when: 'stopped' })
    await halt(engine)
    const anew = await startOn(store, provider)

    expect(await listRemovals(anew.context, root, { limit: 10 })).toEqual([])
    expect(await listInstances(anew.context, root, { state: 'terminating', limit: 10 })).toEqual([])
    const checks = await runDoctor(anew.context, root, null)
    expect(checks.filter((one) => one.name.includes('removals')).map((one) => one.level)).toEqual(['ok'])
    expect(JSON.stringify(checks)).not.toContain('by hand')
    // Closed by a word, and never "gone": nobody proved anything.
    for (const [one, state] of [
      [lease, 'closed'],
      [leaving, 'closed'],
      [kept, 'closed'],
    ] as const)
      expect(await cleanup(anew, one)).toMatchObject({ state, goneAt: null, mayBeLeft: null, leftTo: installation })
    for (const one of [lease, leaving, kept])
      expect(await explainKey(anew.context, root, one.id, new AbortController().signal)).toMatchObject({
        verdict: 'foreign',
        reason: 'foreign.former-installation',
        heldBack: [{ what: expect.stringContaining(`it belongs to installation ${installation}`) as string }],
        change: expect.stringMatching(/^nothing here/) as string,
      })
    for (const one of [lease, leaving, kept])
      await expect(releaseLease(anew.context, ann, one.id, { delete: true })).rejects.toMatchObject({
        code: 'lease_ended',
        message: expect.stringContaining(installation) as string,
      })
    expect(provider.count('remove')).toBe(0)
  })

  it('what an older version left open by a fork says whose it is, and is closed by a word (decisions 6)', async () => {
    const { leaving, store, engine } = await drill()
    await forkInstallation(engine.context, root, { reason: 'only for trying', when: 'stopped' })
    await store.write((tx) =>
      tx.db
        .updateTable('removals')
        .set({ state: 'gave-up', closed_at: null, closed_by: null, closed_reason: null })
        .where('lease_id', '=', leaving.id as never)
        .execute(),
    )
    const [left] = await listRemovals(engine.context, root, { limit: 10 })
    expect(left?.nextStep).toMatch(/^nothing here: installation .* do not end it by hand\. leasehold removal close rm_/)
    const checks = await runDoctor(engine.context, root, null)
    expect(checks.map((one) => one.name)).not.toContain('given-up removals')
    await closeRemoval(engine.context, root, left?.id ?? '', { reason: 'it is theirs' })
    expect(await listRemovals(engine.context, root, { limit: 10 })).toEqual([])
  })

  it('nobody forks a database that is no copy by mistake, and only an admin of every project decides', async () => {
    const store = await (await database()).open()
    const engine = await startOn(store, scriptedProvider('process'))
    await expect(forkInstallation(engine.context, root, { reason: 'oops', when: 'stopped' })).rejects.toMatchObject({ code: 'not_stopped' })
    await expect(forkInstallation(engine.context, root, { reason: ' ', when: 'always' })).rejects.toMatchObject({ code: 'bad_request' })
    for (const who of [actor('admin', 'default'), actor('operator', null), actor('approver', null)])
      for (const act of [
        () => adoptInstallation(engine.context, who, { reason: 'x' }),
        () => forkInstallation(engine.context, who, { reason: 'x', when: 'always' }),
      ])
        await expect(act()).rejects.toMatchObject({ code: 'forbidden' })
    expect(await forkInstallation(engine.context, root, { reason: 'on purpose', when: 'always' })).toMatchObject({ epoch: 2 })
  })

  it('a stop that comes between a removal’s fresh read and its intent still stops it (decisions 6)', async () => {
    const store = await (await database()).open()
    const provider = scriptedProvider('process')
    const engine = await startOn(store, provider)
    const lease = await leaseOn(engine, long)
    provider.onRead = async () => {
      provider.onRead = undefined
      await store.write((tx) =>
        tx.db
          .insertInto('stops')
          .values({ scope: '*', code: 'elsewhere', why: 'a test', evidence: '{}', epoch: null, since_at: tx.now })
          .execute(),
      )
      return undefined
    }
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'held')
    expect(provider.count('remove')).toBe(0)
  })
})
