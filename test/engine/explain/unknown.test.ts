import { expect, it } from 'vitest'
import { explainKey } from '../../../src/engine/explain/index.ts'
import type { ListedResource } from '../../../src/providers/contract.ts'
import { insertBackend } from '../../../src/store/backends.ts'
import { insertProject } from '../../../src/store/projects.ts'
import { leaseOn, root } from '../../support/engine.ts'
import { eachStore } from '../../support/stores.ts'
import { everyRow, long, type SweepWorld } from '../../support/sweep-world.ts'
import { actor } from '../admin/support.ts'
import { explaining } from './support.ts'

const never = new AbortController().signal

eachStore('explaining a resource that no row knows', (open) => {
  const { world, ask, refused } = explaining(open)
  const strange = (w: SweepWorld, nativeId: string, box: ListedResource, changes: Partial<ListedResource>): void =>
    void w.provider.boxes.set(nativeId, {
      ...box,
      resource: { ...box.resource, nativeId, immutableId: `${nativeId}#1` },
      fixedAttemptToken: null,
      ...changes,
    })

  it('is looked at freshly for an operator, and nothing is written', async () => {
    const w = await world()
    const lease = await leaseOn(w.engine, long)
    await w.advance(60)
    const box = w.provider.boxes.get(lease.cloudID ?? '') as ListedResource
    strange(w, 'stranger', box, { tags: { ref: 'r00000000001', installation: null, attempt: null, mac: null } })
    strange(w, 'copy', box, {})
    const before = await everyRow(w.store)
    const calls = w.provider.calls.length
    expect(await ask(w, 'process/here/stranger')).toMatchObject({
      verdict: 'foreign',
      reason: 'foreign.unknown-ref',
      change: 'nothing: it is never touched',
    })
    expect(await ask(w, 'process/here/copy')).toMatchObject({ verdict: 'contradiction', reason: 'contradiction.tags-only' })
    expect(await everyRow(w.store)).toEqual(before)
    expect(w.provider.calls.slice(calls).map((call) => call.op)).toEqual(['list', 'list'])
    // Nobody else makes the provider work.
    await refused(w, 'process/here/stranger', actor('user', 'default'))
    expect(w.provider.calls.length).toBe(calls + 2)
  })

  it('is not found where the listing does not show it, and an incomplete one is not called complete', async () => {
    const w = await world()
    await leaseOn(w.engine, long)
    const message = async (): Promise<string> => {
      const error: unknown = await explainKey(w.engine.context, root, 'process/here/plain', never).catch((one: unknown) => one)
      return error instanceof Error ? error.message : 'it is explained'
    }
    expect(await message()).toContain('carries no tag of ours and is never touched')
    w.provider.onList = () => [
      { type: 'coverage', coverage: { location: 'here', kind: 'box', state: { kind: 'partial', why: 'page 1 failed' }, pages: 0 } },
    ]
    expect(await message()).toContain('was incomplete')
    w.provider.onList = () => {
      throw new Error('the cloud is down')
    }
    expect(await message()).toContain('the cloud is down')
  })

  it('of another project is not told to those of one', async () => {
    const w = await world()
    await w.store.write(async (tx) => {
      await insertProject(tx, 'other')
      await insertBackend(tx, { project: 'other', name: 'local', provider: 'process', config: '{}', scope: null, is_default: 1 })
    })
    const lease = await leaseOn(w.engine, long)
    await w.advance(60)
    strange(w, 'copy', w.provider.boxes.get(lease.cloudID ?? '') as ListedResource, {})
    const error: unknown = await explainKey(w.engine.context, actor('operator', 'other'), 'process/here/copy', never).catch(
      (one: unknown) => one,
    )
    expect(String(error)).toContain('belongs to another project')
    expect(String(error)).not.toContain(lease.slug)
  })
})
