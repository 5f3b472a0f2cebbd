/** The evidence under a verdict is complete: what the listing showed, which sweeps saw it and what they could not see, settings, stops; and places by name. */
import { describe, expect, it } from 'vitest'
import { addFreeze, addHold } from '../../../src/engine/admin/index.ts'
import { createLease } from '../../../src/engine/leases/index.ts'
import type { ListedResource } from '../../../src/providers/contract.ts'
import { insertBackend } from '../../../src/store/backends.ts'
import { insertProject, markProjectDeleted } from '../../../src/store/projects.ts'
import { ann, leaseOn, root } from '../../support/engine.ts'
import { testScope } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import { everyRow, long, t0, type SweepWorld } from '../../support/sweep-world.ts'
import { until } from '../../support/until.ts'
import { actor } from '../admin/support.ts'
import { explaining, facts, nodesOf } from './support.ts'

eachStore('the evidence of an explanation', (open) => {
  const { world, ask, refused } = explaining(open)
  const partial = (w: SweepWorld, why: string, pages = 1): void => {
    w.provider.onList = () => [{ type: 'coverage', coverage: { location: 'here', kind: 'box', state: { kind: 'partial', why }, pages } }]
  }

  it('shows what the listing showed: when it was made, what was fixed then, what its tags name, what it is attached to', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, long)
    const box = w.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    const copy = {
      ...box,
      resource: { ...box.resource, nativeId: 'copy', immutableId: 'copy#1' },
      fixedAttemptToken: null,
      createdAt: t0 - 60_000,
      attachedTo: ['rack-7'],
    }
    w.provider.boxes.set('copy', copy)
    const { id } = await w.sweep()
    const view = await ask(w, 'process/here/copy')
    expect(view).toMatchObject({ verdict: 'contradiction', heldBack: [{ what: expect.stringContaining('a person decides') }] })
    expect(facts(view)).toContain('nothing that was fixed at its creation names an attempt')
    expect(facts(view)).toMatch(/its tags, which can be copied, name installation \w{8} and the token of attempt 1 \(at_/)
    expect(facts(view)).toContain('it is attached to rack-7')
    expect(nodesOf(view.tree).find(({ fact }) => fact.includes('that it was made then'))?.at).toBe(new Date(t0 - 60_000).toISOString())
    expect(facts(view)).toContain(`sweep ${id} (clean) was the last to judge it\neverything in here was listed: box`)
    expect(facts(view)).toContain('the mode of sweeps of process is report (test)')
    expect(facts(view)).toMatch(/its fingerprint is [0-9a-f]{12}/)
  })

  it('of one that is provably ours it names the fact that was fixed at its creation', async () => {
    const w = await world()
    const { key } = await w.orphan()
    await w.sweep()
    expect(facts(await ask(w, key))).toContain('fixed at its creation: the token of attempt 1 (at_')
  })

  it('says what the newest sweep could not see, and the quarantine stands as it stood', async () => {
    const w = await world()
    const { key } = await w.orphan()
    const first = await w.sweep()
    const before = (await ask(w, key)).heldBack
    partial(w, 'page 2 failed')
    const second = await w.sweep()
    const view = await ask(w, key)
    expect(view).toMatchObject({ verdict: 'orphan', heldBack: before })
    expect(facts(view)).toContain(`sweep ${first.id} (unsettled) was the last to judge it`)
    expect(facts(view)).toContain(
      `the newest sweep, ${second.id} (unsettled), did not judge it\nbox in here was listed in part: page 2 failed`,
    )
    w.provider.onList = () => {
      throw new Error('the cloud is down')
    }
    const third = await w.sweep()
    expect(facts(await ask(w, key))).toContain(`the newest sweep, ${third.id}, failed: the cloud is down`)
  })

  describe('of what an active instance has', () => {
    it('says that the newest sweep saw it, and only where that is proved', async () => {
      const w = await world()
      const lease = await leaseOn(w.engine, long)
      expect(facts(await ask(w, lease.id))).toContain('no sweep of its backend has ended yet')
      const early = await w.sweep(1)
      expect(facts(await ask(w, lease.id))).toContain(`sweep ${early.id} of its backend began before it could be sure to show it`)
      const seen = await w.sweep()
      expect(facts(await ask(w, lease.id))).toContain(`sweep ${seen.id} of its backend listed its place completely, and it was there`)
      partial(w, 'page 1 failed', 0)
      await w.sweep()
      expect(facts(await ask(w, lease.id))).toContain('could not list box in here completely: page 1 failed')
    })

    it('never says so of one that a complete listing did not show', async () => {
      const w = await world()
      const lease = await leaseOn(w.engine, long)
      w.provider.boxes.clear()
      await w.sweep()
      const view = facts(await ask(w, lease.id))
      expect(view).not.toContain('it was there')
      expect(view).toContain('(not-seen)')
    })
  })

  it('tells from the events that an uncertain attempt was found by its ref and adopted', async () => {
    const w = await world()
    w.provider.onCreate = (request) => {
      w.provider.make(request)
      w.provider.onCreate = undefined
      return { kind: 'uncertain', message: 'no answer came', resource: null }
    }
    const { lease } = await createLease(w.engine.context, ann, { ...long, createAttemptID: `cat_${'0'.repeat(32)}` })
    // The clock stands still: each look comes when it is moved on.
    await until(async () => {
      await w.advance(1)
      w.engine.context.signals.wake('provision')
      return (await ask(w, lease.id)).verdict === 'tracked'
    }, 'it is adopted')
    expect(facts(await ask(w, lease.id))).toMatch(
      /attempt\.uncertain: .*no answer came\nattempt\.found: Attempt 1 found by its ref .* adopted/,
    )
  })

  it('a hold on an orphan is told with its end', async () => {
    const w = await world({ mode: 'delete' })
    const { key, lease } = await w.orphan()
    await w.sweep()
    const hold = await addHold(w.engine.context, root, {
      targetType: 'instance',
      targetID: lease.instanceID,
      reason: 'looking',
      durationSeconds: 3600,
    })
    expect((await ask(w, key)).heldBack[0]).toEqual({
      what: `hold ${hold.id} on instance ${lease.instanceID}: looking`,
      until: hold.until,
    })
    await w.sweep()
    expect(await ask(w, key)).toMatchObject({ verdict: 'protected', heldBack: [{ until: hold.until }] })
  })

  describe('a stranger, which no listing shows (orphans R27)', () => {
    const unlisted = (w: SweepWorld, ref: string | null): void => {
      w.provider.onRead = (resource) => ({
        kind: 'present',
        found: {
          resource,
          tags: { ref, installation: null, attempt: null, mac: null },
          fixedAttemptToken: null,
          providerState: 'running',
          existence: 'exists',
        },
        contradictions: [],
      })
    }

    it('is found by an exact read, called foreign, and nothing is written', async () => {
      const w = await world()
      unlisted(w, null)
      await w.sweep()
      const before = await everyRow(w.store)
      const view = await ask(w, 'process/here/somebody')
      expect(view).toMatchObject({ type: 'resource', verdict: 'foreign', heldBack: [{ what: 'what is not ours is never touched' }] })
      expect(facts(view)).toContain('box somebody in here is running, no ref')
      expect(await everyRow(w.store)).toEqual(before)
      expect(w.provider.count('remove')).toBe(0)
    })

    it('is not found where there is none, and one that carries a ref is nothing for those of one project', async () => {
      const w = await world()
      await refused(w, 'process/here/somebody')
      unlisted(w, 'abcdefghijkl')
      await refused(w, 'process/here/somebody', actor('operator', 'default'))
      expect(await ask(w, 'process/here/somebody')).toMatchObject({ verdict: 'unseen' })
    })
  })

  describe('a project and an account', () => {
    it('tell of their backends, what is there, and who stops removals', async () => {
      const w = await world()
      const lease = await leaseOn(w.engine, long)
      await w.sweep()
      const project = await ask(w, 'default')
      expect(project).toMatchObject({ type: 'project', verdict: 'tracked', project: 'default', heldBack: [] })
      expect(facts(project)).toMatch(
        /backend default\/local of process .*\nthe mode of its sweeps is report \(test\)\nits newest sweep, sw_\w+, ended clean/,
      )
      expect(facts(project)).toContain('instances: 1 busy')
      const scope = await ask(w, testScope)
      expect(scope).toMatchObject({ type: 'scope', verdict: 'tracked', subject: `scope ${testScope}` })
      expect(facts(scope)).toContain('instances: 1 busy')
      const hold = await addHold(w.engine.context, root, { targetType: 'project', targetID: 'default', reason: 'moving house' })
      await addFreeze(w.engine.context, root, { reason: 'an outage' })
      const stopped = (await ask(w, 'default')).heldBack.map(({ what }) => what)
      expect(stopped).toEqual(['a freeze of every scope: an outage', `hold ${hold.id} on project default: moving house`])
      expect(await ask(w, testScope)).toMatchObject({ verdict: 'held' })
      expect(await ask(w, lease.id)).toMatchObject({ heldBack: [{}, { what: stopped[0] }, { what: stopped[1] }] })
    })

    it('a deleted project drains', async () => {
      const w = await world()
      await w.store.write((tx) => markProjectDeleted(tx, 'default'))
      const view = await ask(w, 'default')
      expect(view).toMatchObject({ verdict: 'ended' })
      expect(facts(view)).toContain('deleted and draining')
    })

    it('of another project nothing is shown, also not through an account that both share', async () => {
      const w = await world()
      await leaseOn(w.engine, long)
      await w.store.write(async (tx) => {
        await insertProject(tx, 'other')
        await insertBackend(tx, { project: 'other', name: 'theirs', provider: 'process', config: '{}', scope: testScope, is_default: 1 })
      })
      const stranger = actor('operator', 'other')
      await refused(w, 'default', stranger)
      await refused(w, 'scripted:unknown')
      const shared = await ask(w, testScope, stranger)
      expect(facts(shared)).toContain('backend other/theirs')
      expect(facts(shared)).not.toContain('default')
      expect(facts(shared)).toContain('no instance of it exists')
      await refused(w, testScope, actor('operator', 'third'))
    })
  })
})
