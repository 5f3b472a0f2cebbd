import { afterEach, expect, it } from 'vitest'
import { addFreeze, addHold, approvePlan, getPlan, listPlans, makePlans, requestSweep } from '../../src/engine/admin/index.ts'
import { receiptText } from '../../src/cli/support/receipt-text.ts'
import { readReceipt } from '../../src/engine/receipt/index.ts'
import type { Actor } from '../../src/engine/actor.ts'
import { LeaseholdError } from '../../src/model/errors.ts'
import { ann, root } from '../support/engine.ts'
import { eachStore } from '../support/stores.ts'
import { sweepWorld, type SweepWorld } from '../support/sweep-world.ts'
import { until } from '../support/until.ts'

const bea: Actor = { name: 'bea', role: 'approver', project: 'default', onlyLease: null }
const opal: Actor = { name: 'opal', role: 'operator', project: 'default', onlyLease: null }
const forever = new AbortController().signal

const refusal = async (promise: Promise<unknown>): Promise<string> => {
  try {
    await promise
    return 'no refusal'
  } catch (error) {
    return error instanceof LeaseholdError ? `${error.code}: ${error.message}` : String(error)
  }
}

eachStore('a plan', (open) => {
  const worlds: SweepWorld[] = []
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.engine.stop(0)
  })
  const world = async (mode: 'report' | 'delete' = 'delete'): Promise<SweepWorld> => {
    const made = await sweepWorld(await open(), { mode, graceMs: 60_000 })
    worlds.push(made)
    return made
  }
  /** So many orphans, past their quarantine: the next look may take them back. */
  const ripe = async (w: SweepWorld, count: number) => {
    const orphans = []
    for (let i = 0; i < count; i++) orphans.push(await w.orphan())
    await w.sweep(700)
    await w.sweep(700)
    return orphans
  }
  const standing = (w: SweepWorld): number => w.provider.boxes.size
  const audit = (w: SweepWorld) => w.store.read(({ db }) => db.selectFrom('audit').selectAll().where('kind', '=', 'operator').execute())

  it('beyond the limits is not begun; approved by its hash by another it goes whole, but for what changed since, and nothing is added (I8, case C6, case C7)', async () => {
    const w = await world()
    const orphans = await ripe(w, 6)
    expect(standing(w)).toBe(6)
    const [plan] = await listPlans(w.engine.context, bea, { limit: 10 })
    expect(plan).toMatchObject({ state: 'waiting', madeBy: 'system', oursInScope: 6 })
    expect(plan?.removals.map((one) => one.target)).toEqual(orphans.map((one) => one.key).toSorted())
    expect(plan?.removals[0]?.proof.length).toBeGreaterThan(0)
    // One of them changes, and one more turns up, before it is approved.
    const [changed] = orphans
    if (!changed) return
    w.provider.boxes.set(changed.box.resource.nativeId, { ...changed.box, labels: { ...changed.box.labels, team: 'x' } })
    const late = await w.orphan()
    const approved = await approvePlan(w.engine.context, bea, (plan?.id ?? '').slice(0, 15), 'looked through')
    expect(approved).toMatchObject({ state: 'approved', approvedBy: 'bea' })
    expect(approved).not.toHaveProperty('warning')
    await until(() => standing(w) === 2, 'the others go')
    expect([...w.provider.boxes.keys()].toSorted()).toEqual([changed.box.resource.nativeId, late.box.resource.nativeId].toSorted())
    await w.sweep(61)
    expect(await getPlan(w.engine.context, bea, plan?.id ?? '')).toMatchObject({ state: 'begun', dropped: [changed.key], pending: [] })
    expect((await audit(w)).map((row) => (JSON.parse(row.body) as { action: string; plan: string }).plan)).toEqual([plan?.id])
  })

  it('names who approved it, why and who made it in the receipt of each removal, for ever; and which hold stopped the others', async () => {
    const w = await world()
    const [first, second] = await ripe(w, 6)
    if (!first || !second) return
    const [plan] = await listPlans(w.engine.context, bea, { limit: 10 })
    const hold = await addHold(w.engine.context, root, { targetType: 'resource', targetID: first.key, reason: 'mine' })
    const approved = await approvePlan(w.engine.context, bea, plan?.id ?? '', 'looked through')
    expect(approved.warning).toBe(`1 of 6 removals can not go on for now: stopped by hold ${hold.id}`)
    await until(() => standing(w) === 1, 'the others go')
    await w.sweep(61)
    const after = await getPlan(w.engine.context, bea, plan?.id ?? '')
    expect(after.held).toEqual([{ target: first.key, by: `hold ${hold.id} on resource ${first.key}` }])
    expect(after.dropped).toEqual([first.key])
    await w.store.write((tx) => tx.db.deleteFrom('plans').execute())
    const receipt = await readReceipt(w.engine.context, root, second.key)
    expect(receipt.removals[0]?.found?.planApproval).toMatchObject({ approvedBy: 'bea', reason: 'looked through', madeBy: 'system' })
    expect(receiptText(receipt).join('\n')).toMatch(/approved by bea at .*: looked through; the plan was made by system/)
  })

  it('that is approved while everything is frozen says so, and one that nothing stops says nothing', async () => {
    const w = await world()
    await ripe(w, 6)
    const [plan] = await listPlans(w.engine.context, bea, { limit: 10 })
    await addFreeze(w.engine.context, root, { scope: '*', reason: 'a look' })
    expect((await approvePlan(w.engine.context, bea, plan?.id ?? '', 'looked through')).warning).toBe(
      '6 of 6 removals can not go on for now: stopped by freeze',
    )
  })

  it('is made on demand also within the limits, and begins nothing; it is the same plan as long as it would take back the same', async () => {
    const w = await world()
    const { key } = await w.orphan()
    await w.sweep(700)
    await w.advance(700)
    const [plan] = await makePlans(w.engine.context, opal, {}, forever)
    expect(plan).toMatchObject({ state: 'waiting', why: null, madeBy: 'opal', removals: [{ target: key }] })
    expect((await makePlans(w.engine.context, opal, {}, forever)).map((one) => one.id)).toEqual([plan?.id])
    expect(standing(w)).toBe(1)
    expect(await w.store.read(({ db }) => db.selectFrom('removals').selectAll().where('state', '<>', 'gone').execute())).toEqual([])
  })

  it('is approved by approvers and admins only, once, in mode delete only, and with four eyes not by its maker', async () => {
    const w = await world('report')
    await ripe(w, 2)
    const [plan] = await makePlans(w.engine.context, root, {}, forever)
    const id = plan?.id ?? ''
    for (const blank of ['', ' ']) expect(await refusal(approvePlan(w.engine.context, bea, id, blank))).toMatch(/^bad_request: reason/)
    const approve = (actor: Actor) => refusal(approvePlan(w.engine.context, actor, id, 'looked through'))
    expect(await approve(opal)).toMatch(/^forbidden: this needs the role approver/)
    expect(await approve(ann)).toMatch(/^forbidden/)
    expect(await approve({ ...bea, project: 'elsewhere' })).toMatch(/^not_found/)
    expect(await approve(bea)).toMatch(/^plan_not_waiting: .*mode report/)
    w.settings.mode = 'delete'
    w.engine.context.fourEyes = true
    expect(await approve(root)).toMatch(/^plan_not_waiting: .*fourEyes/)
    expect(await refusal(approvePlan(w.engine.context, bea, id.slice(0, 9), 'looked through'))).toMatch(/^bad_request: .*too short/)
    expect(standing(w)).toBe(2)
    expect(await approve(bea)).toBe('no refusal')
    expect(await approve(bea)).toMatch(/^plan_not_waiting: .*approved by bea|^plan_not_waiting: .*begun/)
    await until(() => standing(w) === 0, 'both go')
  })

  it('that was approved stops in the middle when the mode flips or a freeze comes (I8)', async () => {
    const w = await world()
    await ripe(w, 4)
    const [plan] = await listPlans(w.engine.context, bea, { limit: 10 })
    let calls = 0
    w.provider.onRemove = () => {
      calls++
      w.settings.mode = 'report'
      return undefined
    }
    await approvePlan(w.engine.context, bea, plan?.id ?? '', 'looked through')
    const held = () => w.store.read(({ db }) => db.selectFrom('removals').selectAll().where('held_by', 'is not', null).execute())
    await until(async () => calls > 0 && (await held()).length === 4 - calls, 'the others are held')
    expect((await held()).map((row) => row.held_by)).toEqual(Array.from({ length: 4 - calls }, () => 'mode report'))
    expect(standing(w)).toBe(4 - calls)
  })

  it('whose place a sweep could not see wholly waits for one that does', async () => {
    const w = await world()
    await ripe(w, 2)
    const [plan] = await listPlans(w.engine.context, bea, { limit: 10 })
    w.provider.onList = () => [
      { type: 'coverage', coverage: { location: 'here', kind: 'box', state: { kind: 'partial', why: 'page 2 answered 500' }, pages: 1 } },
    ]
    await approvePlan(w.engine.context, bea, plan?.id ?? '', 'looked through')
    await requestSweep(w.engine.context, root, {}, 20_000, forever)
    expect(await getPlan(w.engine.context, bea, plan?.id ?? '')).toMatchObject({ state: 'approved', dropped: [] })
    expect(standing(w)).toBe(2)
    w.provider.onList = undefined
    await w.sweep(61)
    await until(() => standing(w) === 0, 'both go')
  })
})
