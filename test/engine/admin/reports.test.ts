/** Filters of reports: what is asked for must be known, what can't be answered is shown and marked, and nothing of it decides a deletion. */
import { afterEach, describe, expect, it } from 'vitest'
import { addBackend, auditLeases, listFindings, listInstances, listPlans, listSweeps, readAudit } from '../../../src/engine/admin/index.ts'
import type { Actor } from '../../../src/engine/actor.ts'
import { createLease, listLeases, releaseLease } from '../../../src/engine/leases/index.ts'
import { insertProject } from '../../../src/store/projects.ts'
import { ann, leaseOn, leaseWhen, root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { long, sweepWorld, type SweepWorld } from '../../support/sweep-world.ts'
import { actor } from './support.ts'

const bob: Actor = { ...ann, name: 'bob' }
const limit = 100

eachStore('the filters of reports', (open) => {
  const worlds: SweepWorld[] = []
  afterEach(async () => {
    for (const one of worlds.splice(0)) await one.engine.stop(0)
  })
  const world = async (given: Parameters<typeof sweepWorld>[1] = {}): Promise<SweepWorld> => {
    const made = await sweepWorld(await open(), given)
    worlds.push(made)
    // A kind that is known here, and that nothing is of.
    Object.assign(made.provider, { kinds: ['box', 'disk'] })
    return made
  }

  describe('what is asked for must be known', () => {
    it.each([
      ['project', 'nope', 'project: no project "nope" is known here; there is default'],
      ['backend', 'nope', 'backend: no backend "nope" is known here; there is local'],
      ['provider', 'aws', 'provider: no provider "aws" is known here; there is process'],
      ['owner', 'anm', 'owner: nobody of the name "anm" is known here; there is ann'],
      ['kind', 'boxes', 'kind: no kind "boxes" is known here; there is box, disk'],
      ['label', 'team', 'label: must be key=value, not "team"'],
    ])('a misspelt %s is refused, and the answer says what there is', async (field, value, message) => {
      const w = await world()
      await leaseOn(w.engine, long)
      const context = w.engine.context
      const asked = { limit, [field]: value }
      const lists: Record<string, () => Promise<unknown>> = {
        leases: () => listLeases(context, root, asked),
        instances: () => listInstances(context, root, asked),
        findings: () => listFindings(context, root, asked),
        sweeps: () => listSweeps(context, root, asked),
        plans: () => listPlans(context, root, asked),
        debts: () => auditLeases(context, root, asked),
        audit: () => readAudit(context, root, asked),
      }
      const taking: Record<string, readonly string[]> = {
        project: Object.keys(lists),
        backend: ['findings', 'sweeps', 'plans'],
        provider: ['leases', 'debts'],
        owner: ['leases', 'instances', 'findings', 'debts'],
        kind: ['leases', 'instances', 'findings'],
        label: ['leases', 'instances', 'findings'],
      }
      for (const name of taking[field] ?? []) await expect(lists[name]?.(), name).rejects.toMatchObject({ code: 'bad_request', message })
    })

    it('known is also what is gone and left something behind', async () => {
      const w = await world()
      const context = w.engine.context
      await addBackend(context, root, { name: 'old', provider: 'process' })
      await leaseOn(w.engine, { ...long, backend: 'old' })
      await w.store.write((tx) => tx.db.deleteFrom('backends').where('name', '=', 'old').execute())
      expect(await listFindings(context, root, { backend: 'old', limit })).toEqual([])
      expect(await listLeases(context, root, { owner: 'ann', limit })).toHaveLength(1)
    })

    it('those of one project are told of nothing else', async () => {
      const w = await world()
      const context = w.engine.context
      await leaseOn(w.engine, long)
      await w.store.write((tx) => insertProject(tx, 'other'))
      const other = actor('operator', 'other')
      await expect(listLeases(context, other, { owner: 'ann', limit })).rejects.toMatchObject({
        code: 'bad_request',
        message: 'owner: nobody of the name "ann" is known here; there is none',
      })
      await expect(listFindings(context, other, { backend: 'local', limit })).rejects.toMatchObject({ code: 'bad_request' })
      await expect(listLeases(context, other, { project: 'default', limit })).rejects.toMatchObject({ code: 'not_found' })
    })

    it('a removal that nobody knows has no audit; one that was never tried has an empty one', async () => {
      const w = await world()
      await expect(readAudit(w.engine.context, root, { removal: 'rm_0', limit })).rejects.toMatchObject({ code: 'not_found' })
    })
  })

  it('leases and instances are narrowed by owner, label, kind and age, one or several at once', async () => {
    const w = await world()
    const context = w.engine.context
    const first = await leaseOn(w.engine, { ...long, labels: { team: 'web', 'a.b/c': 'x' } }, ann)
    await w.advance(3600)
    const second = await leaseOn(w.engine, { ...long, labels: { team: 'db' } }, bob)
    const leases = async (asked: object) => (await listLeases(context, root, { limit, ...asked })).map((one) => one.id)
    const instances = async (asked: object) => (await listInstances(context, root, { limit, ...asked })).map((one) => one.leaseID)
    for (const of of [leases, instances]) {
      expect(await of({})).toEqual([second.id, first.id])
      expect(await of({ owner: 'ann' })).toEqual([first.id])
      expect(await of({ label: 'team=db' })).toEqual([second.id])
      expect(await of({ label: 'a.b/c=x' })).toEqual([first.id])
      const refused = { code: 'bad_request', message: expect.stringMatching(/^label: nothing with the label .*; there is /) as string }
      for (const label of ['team=d', `team=d' or '1'='1`, 'teem=db', 'team=d_'])
        await expect(of({ label }), label).rejects.toMatchObject(refused)
      expect(await of({ kind: 'box' })).toEqual([second.id, first.id])
      expect(await of({ kind: 'disk' })).toEqual([])
      expect(await of({ olderThanSeconds: 3600 })).toEqual([first.id])
      expect(await of({ olderThanSeconds: 3601 })).toEqual([])
      expect(await of({ owner: 'ann', label: 'team=db' })).toEqual([])
      expect(await of({ owner: 'bob', label: 'team=db', kind: 'box', olderThanSeconds: 0 })).toEqual([second.id])
      expect(await of({ owner: 'ann', limit: 1 })).toEqual([first.id])
    }
    expect((await listLeases(context, root, { owner: 'ann', kind: 'box', limit })).map((one) => one.unknown)).toEqual([undefined])
  })

  it('what nobody can say is shown, and marked as unknown', async () => {
    const w = await world()
    const context = w.engine.context
    const bound = await leaseOn(w.engine, long)
    w.provider.onCreate = () => new Promise(() => undefined)
    const { lease } = await createLease(context, ann, long)
    // Of what is being made nothing is recorded yet.
    const leases = await listLeases(context, root, { kind: 'disk', limit })
    expect(leases.map((one) => [one.id, one.unknown])).toEqual([[lease.id, ['kind']]])
    const instances = await listInstances(context, root, { kind: 'box', limit })
    expect(instances.map((one) => [one.leaseID, one.unknown])).toEqual([
      [lease.id, ['kind']],
      [bound.id, undefined],
    ])
    // An instance that no lease has: whose it is, and its labels, are nowhere.
    await w.store.write((tx) =>
      tx.db
        .updateTable('instances')
        .set({ lease_id: null })
        .where('id', '=', bound.instanceID as never)
        .execute(),
    )
    const alone = await listInstances(context, root, { owner: 'root', label: 'team=web', limit })
    expect(alone.map((one) => [one.id, one.unknown])).toEqual([[bound.instanceID, ['owner', 'label']]])
  })

  describe('findings', () => {
    it('are narrowed by the owner of their ref, the kind and labels of what was listed, and how long they stand', async () => {
      const w = await world()
      const context = w.engine.context
      const orphanOf = async (who: Actor, labels: Record<string, string>) => {
        const lease = await leaseOn(w.engine, { ...long, labels }, who)
        const box = w.provider.boxes.get(lease.cloudID ?? '')
        await releaseLease(context, who, lease.id, {})
        await leaseWhen(w.engine, lease.id, (view) => view.cleanup.state === 'gone')
        if (box) w.provider.boxes.set(box.resource.nativeId, box)
        return `process/here/${lease.cloudID}`
      }
      const ofAnn = await orphanOf(ann, { team: 'web' })
      await w.sweep()
      await w.advance(7200)
      const ofBob = await orphanOf(bob, { team: 'db' })
      await w.sweep()
      const of = async (asked: object) =>
        (await listFindings(context, root, { code: ['orphan'], limit, ...asked })).map((one) => one.target.id)
      expect((await of({})).toSorted()).toEqual([ofAnn, ofBob].toSorted())
      expect(await of({ owner: 'ann' })).toEqual([ofAnn])
      expect(await of({ label: 'team=db' })).toEqual([ofBob])
      // Nobody has ever had it: nothing shown would look like "all is well". Later it is known, by what was listed alone.
      await expect(of({ label: 'team=ops' })).rejects.toMatchObject({
        code: 'bad_request',
        message: 'label: nothing with the label "team=ops" is known here; there is team=db, team=web',
      })
      await expect(of({ label: 'teem=ops' })).rejects.toMatchObject({ message: expect.stringMatching(/there is team$/) as string })
      expect(await of({ kind: 'disk' })).toEqual([])
      expect(await of({ kind: 'box', owner: 'bob' })).toEqual([ofBob])
      expect(await of({ olderThanSeconds: 7200 })).toEqual([ofAnn])
      expect(await of({ owner: 'bob', olderThanSeconds: 7200 })).toEqual([])
      expect(await of({ kind: 'box', limit: 1 })).toHaveLength(1)
      // The labels that were seen go before those that our own rows remember.
      const seen = w.provider.boxes.get(ofAnn.split('/')[2] ?? '')
      if (seen) w.provider.boxes.set(seen.resource.nativeId, { ...seen, labels: { ...seen.labels, team: 'ops', password: 'hunter2' } })
      await w.sweep()
      expect(await of({ label: 'team=ops' })).toEqual([ofAnn])
      expect(await of({ label: 'team=web' })).toEqual([])
      expect(JSON.stringify(await listFindings(context, root, { limit }))).not.toContain('hunter2')
    })

    it('whose owner, kind or labels nobody knows are shown and marked', async () => {
      const w = await world()
      const context = w.engine.context
      const { key, box } = await w.orphan()
      w.provider.boxes.set(box.resource.nativeId, { ...box, labels: null })
      w.provider.onList = () => [
        { type: 'page', location: 'here', kind: 'box', resources: [...w.provider.boxes.values()] },
        { type: 'coverage', coverage: { location: 'here', kind: 'box', state: { kind: 'complete' }, pages: 1 } },
        { type: 'coverage', coverage: { location: 'here', kind: 'disk', state: { kind: 'denied', permission: 'disks.list' }, pages: 0 } },
      ]
      await w.sweep()
      const of = async (asked: object) =>
        (await listFindings(context, root, { code: ['denied-kind', 'protected'], limit, ...asked }))
          .map((one): [string, string[] | undefined] => [one.code, one.unknown])
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
      expect(key).toContain(box.resource.nativeId)
      expect(await of({})).toEqual([
        ['denied-kind', undefined],
        ['protected', undefined],
      ])
      expect(await of({ owner: 'root' })).toEqual([['denied-kind', ['owner']]])
      expect(await of({ kind: 'disk' })).toEqual([['denied-kind', ['kind']]])
      expect(await of({ label: 'team=web' })).toEqual([
        ['denied-kind', ['label']],
        ['protected', ['label']],
      ])
    })

    it('many are paged through: the limit counts what fits, not what was looked at', async () => {
      const w = await world({ start: false })
      await w.store.write(async (tx) => {
        const row = (i: number) => ({
          id: `fd_${String(i).padStart(32, '0')}`,
          code: i % 300 === 0 ? 'orphan' : 'stuck',
          state: 'open' as const,
          project: 'default',
          scope: null,
          target_type: 'resource',
          target_id: `process/here/${i}`,
          target_name: `box ${i}`,
          message: 'm',
          fingerprint: 'f',
          evidence: JSON.stringify({ members: [{ kind: i % 300 === 0 ? 'box' : 'disk', nativeId: `${i}`, location: 'here', labels: {} }] }),
          first_seen_at: i,
          last_seen_at: i % 7,
          times_seen: 1,
          reported_at: null,
          resolved_at: null,
          backend: 'local',
          ref: null,
          attempt_id: null,
          standing_since: null,
          complete_sightings: 0,
          last_complete_at: null,
          sweep_id: null,
        })
        for (let at = 0; at < 1300; at += 100)
          await tx.db
            .insertInto('findings')
            .values(Array.from({ length: 100 }, (_, i) => row(at + i)))
            .execute()
      })
      const boxes = (most: number) => listFindings(w.engine.context, root, { kind: 'box', limit: most })
      expect((await boxes(limit)).map((one) => one.target.id).toSorted()).toEqual(
        [0, 300, 600, 900, 1200].map((i) => `process/here/${i}`).toSorted(),
      )
      expect(await boxes(2)).toHaveLength(2)
    })
  })
})
