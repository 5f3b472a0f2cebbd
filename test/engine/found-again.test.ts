/** Between a sweep's verdict and its removal anything may happen: what changed is not taken back, and what somebody holds neither. */
import { afterEach, expect, it } from 'vitest'
import { addHold } from '../../src/engine/admin/index.ts'
import { reportFinding, resolveAbout } from '../../src/engine/record.ts'
import type { ListedResource } from '../../src/providers/contract.ts'
import { root } from '../support/engine.ts'
import { eachStore } from '../support/stores.ts'
import { sweepWorld, type SweepWorld } from '../support/sweep-world.ts'
import { until } from '../support/until.ts'

eachStore('what a sweep found', (open) => {
  const worlds: SweepWorld[] = []
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.engine.stop(0)
  })
  const world = async (): Promise<SweepWorld> => {
    const made = await sweepWorld(await open(), { mode: 'delete', graceMs: 60_000 })
    worlds.push(made)
    return made
  }
  const removal = (w: SweepWorld) =>
    w.store.read(({ db }) => db.selectFrom('removals').selectAll().where('cause', 'like', 'orphan.%').orderBy('opened_at').execute())
  /** An orphan whose removal is open and has failed once, because its fresh read did. */
  const opened = async (w: SweepWorld) => {
    const orphan = await w.orphan()
    w.provider.onRead = () => ({ kind: 'unknown', error: 'HTTP 500' })
    await w.sweep(700)
    await w.sweep(700)
    await until(async () => (await removal(w))[0]?.failures === 1, 'its removal is open, and failed once')
    return orphan
  }
  const tryAgain = async (w: SweepWorld): Promise<void> => {
    w.provider.onRead = undefined
    await w.advance(301)
    w.engine.context.signals.wake('remove')
  }
  const events = (w: SweepWorld, code: string) =>
    w.store.read(({ db }) => db.selectFrom('events').selectAll().where('code', '=', code).execute())

  it.each([
    ['labels', (box: ListedResource): Partial<ListedResource> => ({ labels: { ...box.labels, owner: 'bob' } })],
    ['name', (): Partial<ListedResource> => ({ name: 'bobs-database' })],
    ['attachments', (): Partial<ListedResource> => ({ attachedTo: ['somebody-elses'] })],
  ])(
    'and whose %s changed before it was taken back is dropped, and stands its quarantine again (leases R59, case leases 16)',
    async (_, change) => {
      const w = await world()
      const { box } = await opened(w)
      const calls = w.provider.count('remove')
      w.provider.boxes.set(box.resource.nativeId, { ...box, ...change(box) })
      await tryAgain(w)
      await until(async () => (await events(w, 'removal.dropped')).length === 1, 'it is dropped')
      await w.sweep(301)
      expect(w.provider.count('remove')).toBe(calls)
      expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
      // The twin: back as it was, and unchanged for as long as any other, it goes.
      w.provider.boxes.set(box.resource.nativeId, box)
      await w.sweep(700)
      expect(w.provider.boxes.has(box.resource.nativeId)).toBe(true)
      await w.sweep(700)
      await until(() => !w.provider.boxes.has(box.resource.nativeId), 'it goes when it has stood again')
    },
  )

  it('and that would take something else along by now is held back', async () => {
    const w = await world()
    const { box } = await opened(w)
    w.provider.boxes.set(box.resource.nativeId, { ...box, reportOnly: 'deleting it deletes disk d-9 (cascade option)' })
    const calls = w.provider.count('remove')
    await tryAgain(w)
    await until(async () => (await removal(w))[0]?.held_by !== null, 'it is held back')
    expect((await removal(w))[0]?.held_by).toContain('cascade option')
    expect(w.provider.count('remove')).toBe(calls)
  })

  it('and that somebody holds by the name of any of its resources stays', async () => {
    const w = await world()
    const { box, key } = await opened(w)
    // As where the attempt never recorded the id: only what the removal has bound names it.
    await w.store.write((tx) =>
      tx.db
        .updateTable('attempts')
        .set({ native_id: 'something-else' })
        .where('ref', '=', box.tags.ref as never)
        .execute(),
    )
    await addHold(w.engine.context, root, { targetType: 'resource', targetID: key, reason: 'mine' })
    const calls = w.provider.count('remove')
    await tryAgain(w)
    await until(async () => (await removal(w))[0]?.held_by !== null, 'it is held')
    expect(w.provider.count('remove')).toBe(calls)
  })

  it('in one account or project is not what stands under the same name in another', async () => {
    const w = await world()
    const about = (project: string, scope: string, message = 'm') => ({
      code: 'orphan' as const,
      project,
      scope,
      target: { type: 'resource' as const, id: 'simulated/sim-a/i-1', name: 'nul\u0000in it' },
      message,
      evidence: {},
      fingerprint: `${project} ${scope}`,
    })
    const places = [
      ['a', 'one'],
      ['a', 'two'],
      ['b', 'one'],
    ] as const
    for (let round = 0; round < 2; round++)
      for (const [project, scope] of places) await w.store.write((tx) => reportFinding(tx, about(project, scope)))
    const open = () =>
      w.store.read(({ db }) => db.selectFrom('findings').selectAll().where('state', '=', 'open').orderBy('fingerprint').execute())
    expect((await open()).map((row) => [row.fingerprint, row.times_seen])).toEqual(places.map((place) => [place.join(' '), 2]))
    expect(await events(w, 'finding.changed')).toEqual([])
    await w.store.write((tx) => resolveAbout(tx, 'resource', ['simulated/sim-a/i-1'], 'orphan', { project: 'a', scope: 'one' }))
    expect((await open()).map((row) => row.fingerprint)).toEqual(['a two', 'b one'])
  })
})
