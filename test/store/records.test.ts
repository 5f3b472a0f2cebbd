import { expect, it } from 'vitest'
import { appendAudit, auditOfRemoval, type NewAudit } from '../../src/store/audit.ts'
import { updateEach } from '../../src/store/bulk.ts'
import { listFindings, resolveFindings, sight, type NewFinding } from '../../src/store/findings.ts'
import { everyScope, freeze, insertHold, listFreezes, listHolds, removeHold, standingHolds, unfreeze } from '../../src/store/holds.ts'
import { closeOwners, ledgerByRef } from '../../src/store/ledger.ts'
import { forgiveIdleness, liveLeasesBySlug, slugIsLive } from '../../src/store/leases.ts'
import { wakeHeldRemovals } from '../../src/store/removals.ts'
import type { Store } from '../../src/store/store.ts'
import { eachStore, setClock } from '../support/stores.ts'
import { insertRows } from './rows.ts'

const t0 = 1_780_000_000_000
const finding: NewFinding = {
  code: 'contradiction',
  project: 'default',
  scope: null,
  target_type: 'resource',
  target_id: 'process/here/x',
  target_name: 'x',
  message: 'not ours',
  fingerprint: 'one',
  evidence: { why: 'one' },
}

eachStore('findings', (open) => {
  let ids = 0
  const see = (store: Store, over: Partial<NewFinding> = {}) =>
    store.write((tx) => sight(tx, { ...finding, ...over }, () => `fd_${String(ids++).padStart(4, '0')}`))

  it('open once, count their sightings, tell a change from a repetition, and resolve (orphans U6)', async () => {
    const store = await open()
    await setClock(store, t0)
    const first = await see(store)
    expect(first).toMatchObject({ kind: 'appeared', row: { state: 'open', times_seen: 1, first_seen_at: t0 } })
    await setClock(store, t0 + 1000)
    expect(await see(store)).toMatchObject({
      kind: 'again',
      row: { id: first.row.id, times_seen: 2, first_seen_at: t0, last_seen_at: t0 + 1000 },
    })
    expect(await see(store, { fingerprint: 'two', message: 'still not ours', evidence: { why: 'two' } })).toMatchObject({
      kind: 'changed',
      row: { id: first.row.id, times_seen: 3, message: 'still not ours', evidence: '{"why":"two"}' },
    })
    // The change and its reversal are two changes.
    expect((await see(store)).kind).toBe('changed')
    expect(await store.read((session) => listFindings(session, { project: null, state: 'open', limit: 9 }))).toHaveLength(1)

    const resolved = await store.write((tx) => resolveFindings(tx, 'contradiction', 'resource', ['process/here/x', 'another']))
    expect(resolved.map((row) => row.id)).toEqual([first.row.id])
    expect(await store.write((tx) => resolveFindings(tx, 'contradiction', 'resource', ['process/here/x']))).toEqual([])
    const again = await see(store)
    expect(again).toMatchObject({ kind: 'appeared', row: { times_seen: 1 } })
    expect(again.row.id).not.toBe(first.row.id)
    const all = await store.read((session) => listFindings(session, { project: 'default', state: null, limit: 9 }))
    expect(all.map((row) => row.state).toSorted()).toEqual(['open', 'resolved'])
  })

  it('are told apart by code and target, and resolving one leaves the others', async () => {
    const store = await open()
    await see(store)
    await see(store, { code: 'retained-overdue' })
    await see(store, { target_id: 'process/here/y' })
    await see(store, { target_type: 'lease' })
    await store.write((tx) => resolveFindings(tx, 'contradiction', 'resource', ['process/here/x']))
    const open1 = await store.read((session) => listFindings(session, { project: null, state: 'open', limit: 9 }))
    expect(open1.map((row) => `${row.code} ${row.target_type} ${row.target_id}`).toSorted()).toEqual([
      'contradiction lease process/here/x',
      'contradiction resource process/here/y',
      'retained-overdue resource process/here/x',
    ])
    // Without a code: all about that target.
    expect(await store.write((tx) => resolveFindings(tx, null, 'resource', ['process/here/x']))).toHaveLength(1)
    expect(await store.write((tx) => resolveFindings(tx, null, 'resource', []))).toEqual([])
  })

  it('two that see the same at the same moment open one', async () => {
    const store = await open()
    const kinds = (await Promise.all(Array.from({ length: 6 }, () => see(store)))).map((one) => one.kind)
    expect(kinds.toSorted()).toEqual(['again', 'again', 'again', 'again', 'again', 'appeared'])
    expect(await store.read((session) => listFindings(session, { project: null, state: null, limit: 9 }))).toMatchObject([
      { times_seen: 6 },
    ])
  })
})

eachStore('holds and freezes', (open) => {
  it('a hold stands until its end to the millisecond, or until it is removed; a removal counts once', async () => {
    const store = await open()
    await setClock(store, t0)
    const hold = { target_type: 'lease' as const, target_id: 'lh_1', project: 'default', reason: 'why', created_by: 'ann' }
    await store.write((tx) => insertHold(tx, { ...hold, id: 'hd_ever', until_at: null }))
    await store.write((tx) => insertHold(tx, { ...hold, id: 'hd_until', until_at: t0 + 1000 }))
    const standing = async (now: number): Promise<string[]> =>
      (await store.read((session) => standingHolds(session, now))).map((row) => row.id).toSorted()
    expect(await standing(t0 + 999)).toEqual(['hd_ever', 'hd_until'])
    expect(await standing(t0 + 1000)).toEqual(['hd_ever'])
    await store.write((tx) => removeHold(tx, 'hd_ever', 'ann'))
    await setClock(store, t0 + 5000)
    await store.write((tx) => removeHold(tx, 'hd_ever', 'bob'))
    expect(await standing(t0)).toEqual(['hd_until'])
    const all = await store.read((session) => listHolds(session, { project: 'default', all: true, now: t0 }))
    expect(all.find((row) => row.id === 'hd_ever')).toMatchObject({ removed_at: t0, removed_by: 'ann' })
    expect(await store.read((session) => listHolds(session, { project: 'other', all: true, now: t0 }))).toEqual([])
  })

  it('a freeze is one per scope: the second replaces the reason; what is not frozen can not be let go', async () => {
    const store = await open()
    const put = (scope: string, reason: string) => store.write((tx) => freeze(tx, { scope, reason, created_by: 'ann' }))
    await put(everyScope, 'first')
    await put(everyScope, 'second')
    await put('machine:one', 'third')
    expect((await store.read(listFreezes)).map((row) => [row.scope, row.reason])).toEqual([
      ['*', 'second'],
      ['machine:one', 'third'],
    ])
    expect(await store.write((tx) => unfreeze(tx, everyScope))).toBe(true)
    expect(await store.write((tx) => unfreeze(tx, everyScope))).toBe(false)
    expect((await store.read(listFreezes)).map((row) => row.scope)).toEqual(['machine:one'])
  })

  it('when one is lifted, held removals are due at once; locked, finished and stopped ones are left alone', async () => {
    const store = await open()
    await setClock(store, t0)
    const later = { due_at: t0 + 60_000 }
    await store.write((tx) =>
      insertRows(
        tx,
        'removals',
        5,
        (n) =>
          [
            {},
            { held_by: 'freeze', ...later },
            { held_by: null, ...later },
            { held_by: 'freeze', ...later, lock_owner: 're_1', lock_until: t0 + 60_000 },
            { held_by: 'freeze', state: 'gone', due_at: null },
            { held_by: 'freeze', due_at: null },
          ][n] as object,
      ),
    )
    await store.write(wakeHeldRemovals)
    const due = await store.read(({ db }) => db.selectFrom('removals').select(['id', 'due_at']).orderBy('id').execute())
    expect(due.map((row) => row.due_at)).toEqual([t0, t0 + 60_000, t0 + 60_000, null, null])
  })
})

eachStore('rows of leases and of the ledger', (open) => {
  it('idle deadlines that fell into a downtime move, never past createdAt + ttl, and nothing else moves (decisions 1)', async () => {
    const store = await open()
    await setClock(store, t0)
    const gone = t0 - 3_600_000
    const ttl = 86_400
    const idle = (expires_at: number, over: object = {}) => ({ created_at: t0 - 40_000_000, ttl_seconds: ttl, expires_at, ...over })
    const rows: Record<number, object> = {
      1: idle(gone + 1),
      2: idle(t0),
      3: idle(t0 + 120_000),
      // Twins: past before the downtime, beyond it, ended already, and one whose lifetime is over.
      4: idle(gone),
      5: idle(t0 + 120_001),
      6: idle(t0 - 1, { state: 'released' }),
      7: { created_at: t0 - 100_000, ttl_seconds: 90, expires_at: t0 - 10_000 },
      // Its lifetime ends before the new deadline would: it gets no more than that.
      8: { created_at: t0 - 50_000, ttl_seconds: 60, expires_at: t0 - 20_000 },
      9: idle(t0 - 1, { state: 'provisioning' }),
    }
    await store.write((tx) => insertRows(tx, 'leases', 9, (n) => ({ ...rows[n], due_at: 77 })))
    expect(await store.write((tx) => forgiveIdleness(tx, gone, t0 + 120_000, t0 + 120_000))).toBe(5)
    const after = await store.read(({ db }) => db.selectFrom('leases').select(['expires_at', 'due_at']).orderBy('id').execute())
    expect(after.map((row) => row.expires_at - t0)).toEqual([120_000, 120_000, 120_000, -3_600_000, 120_001, -1, -10_000, 10_000, 120_000])
    expect(new Set(after.map((row) => row.due_at))).toEqual(new Set([77]))
  })

  it('a slug names one live lease of a project; it is free again after its end (leases R1)', async () => {
    const store = await open()
    await store.write((tx) => insertRows(tx, 'leases', 1, () => ({ slug: 'web', expires_at: t0 })))
    await store.write((tx) => insertRows(tx, 'leases', 1, () => ({ slug: 'web', project: 'other', expires_at: t0 }), 2))
    await expect(store.write((tx) => insertRows(tx, 'leases', 1, () => ({ slug: 'web' }), 3))).rejects.toThrow(/unique/i)
    const named = async (project: string | null, now: number): Promise<string[]> =>
      (await store.read((session) => liveLeasesBySlug(session, 'web', project, now))).map((row) => row.project).toSorted()
    expect(await named(null, t0 - 1)).toEqual(['default', 'other'])
    expect(await named('default', t0 - 1)).toEqual(['default'])
    // At its end it is not found by its slug any more.
    expect(await named(null, t0)).toEqual([])
    await store.write(async (tx) => {
      await tx.db.updateTable('leases').set({ state: 'expired' }).where('project', '=', 'default').execute()
    })
    expect(await store.read((session) => slugIsLive(session, 'default', 'web'))).toBe(false)
    expect(await store.read((session) => slugIsLive(session, 'other', 'web'))).toBe(true)
    await store.write((tx) => insertRows(tx, 'leases', 1, () => ({ slug: 'web' }), 4))
  })

  it('a ref is owned by one instance for ever, and its owner is closed once (I2, orphans R1, R14, U4)', async () => {
    const store = await open()
    const row = {
      project: 'default',
      owner_kind: 'instance' as const,
      owner_name: 'n',
      parents: '[]',
      issued_at: t0,
      owner_closed_at: null,
    }
    const issue = (ref: string, owner: string) =>
      store.write(async (tx) => {
        await tx.db
          .insertInto('ledger')
          .values({ ...row, ref: ref as never, owner_id: owner })
          .execute()
      })
    await issue('rabcdefghij1', 'in_1')
    await expect(issue('rabcdefghij1', 'in_2')).rejects.toThrow(/unique/i)
    await setClock(store, t0)
    await store.write((tx) => closeOwners(tx, ['rabcdefghij1' as never]))
    await setClock(store, t0 + 5)
    await store.write((tx) => closeOwners(tx, ['rabcdefghij1' as never]))
    await store.write((tx) => closeOwners(tx, []))
    expect(await store.read((session) => ledgerByRef(session, 'rabcdefghij1'))).toMatchObject({ owner_id: 'in_1', owner_closed_at: t0 })
    expect(await store.read((session) => ledgerByRef(session, 'rabcdefghij9'))).toBeUndefined()
  })

  it('an intent has one outcome at most, and they are read in the order of their writing (I7)', async () => {
    const store = await open()
    const record = (id: string, kind: 'intent' | 'outcome', intent: string | null): NewAudit => ({
      id,
      kind,
      intent_id: intent,
      removal_id: 'rm_1' as never,
      project: 'default',
      scope: null,
      ref: null,
      actor: 'system',
      body: { id },
    })
    await store.write((tx) => appendAudit(tx, [record('au_1', 'intent', null)]))
    await store.write((tx) => appendAudit(tx, [record('au_2', 'outcome', 'au_1')]))
    await expect(store.write((tx) => appendAudit(tx, [record('au_3', 'outcome', 'au_1')]))).rejects.toThrow(/unique/i)
    await store.write((tx) => appendAudit(tx, []))
    expect((await store.read((session) => auditOfRemoval(session, 'rm_1'))).map((row) => [row.id, row.body])).toEqual([
      ['au_1', '{"id":"au_1"}'],
      ['au_2', '{"id":"au_2"}'],
    ])
  })

  it('many rows are changed in one go, each to values of its own, and those that are not there are left out', async () => {
    const store = await open()
    await store.write((tx) => insertRows(tx, 'leases', 5000))
    const cells = Array.from({ length: 6000 }, (_, i) => [`lh_${(i + 1).toString(16).padStart(12, '0')}`, `state-${i}`, i, null] as const)
    await store.write((tx) =>
      updateEach(
        tx,
        'leases',
        [
          ['id', 'text'],
          ['failure_error', 'text'],
          ['retain_until', 'bigint'],
          ['due_at', 'bigint'],
        ],
        cells,
      ),
    )
    const rows = await store.read(({ db }) =>
      db.selectFrom('leases').select(['failure_error', 'retain_until', 'due_at']).orderBy('id').execute(),
    )
    expect(rows).toEqual(cells.slice(0, 5000).map(([, failure_error, retain_until, due_at]) => ({ failure_error, retain_until, due_at })))
  })
})
