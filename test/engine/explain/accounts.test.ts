import { afterEach, expect, it } from 'vitest'
import { explainKey } from '../../../src/engine/explain/index.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import { releaseLease } from '../../../src/engine/leases/index.ts'
import { readReceipt } from '../../../src/engine/receipt/index.ts'
import type { AttemptId, RemovalId, ScopeId } from '../../../src/model/ids.ts'
import { ann, leaseOn, leaseWhen, makeEngine, root } from '../../support/engine.ts'
import { scriptedProvider } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'

eachStore('the same id in two accounts', (open) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })

  it('is refused as ambiguous, with what to name instead: what is told of the one is never taken for the other', async () => {
    const engine = await makeEngine(await open(), scriptedProvider())
    engines.push(engine)
    await engine.start()
    const lease = await leaseOn(engine)
    const key = `${lease.provider}/${lease.location}/${lease.cloudID}`
    const look = () => explainKey(engine.context, root, key, new AbortController().signal)
    // The twin: in one account it is told.
    expect((await look()).verdict).toBe('tracked')
    const { store } = engine.context
    await store.write(async (tx) => {
      const row = await tx.db.selectFrom('attempts').selectAll().executeTakeFirstOrThrow()
      const other = { id: `at_${'0'.repeat(32)}` as AttemptId, number: 2, token: 'other', scope: 'scripted:two' as ScopeId }
      await tx.db
        .insertInto('attempts')
        .values({ ...row, ...other })
        .execute()
    })
    const ambiguous = { code: 'bad_request', message: expect.stringMatching(/in several accounts: .*in scripted:two/) as string }
    await expect(look()).rejects.toMatchObject(ambiguous)
    for (const name of [key, lease.cloudID ?? '']) await expect(readReceipt(engine.context, root, name)).rejects.toMatchObject(ambiguous)
  })

  it('that only removals bound is refused by a receipt too, with the removals to name', async () => {
    const engine = await makeEngine(await open(), scriptedProvider())
    engines.push(engine)
    await engine.start()
    const lease = await leaseOn(engine)
    await releaseLease(engine.context, ann, lease.id, {})
    await leaseWhen(engine, lease.id, (view) => view.cleanup.state === 'gone')
    const { store } = engine.context
    const disk = { scope: 'scripted:one', location: 'here', kind: 'disk', nativeId: 'd-1', immutableId: 'd-1#1', facts: {} }
    const bind = (values: object) => store.write((tx) => tx.db.updateTable('removals').set(values).execute())
    await bind({ identity: JSON.stringify([disk]) })
    const key = `${lease.provider}/here/d-1`
    // The twin: of one account it is told.
    expect((await readReceipt(engine.context, root, key)).removals).toHaveLength(1)
    await store.write(async (tx) => {
      const row = await tx.db.selectFrom('removals').selectAll().executeTakeFirstOrThrow()
      const other = { id: `rm_${'0'.repeat(32)}` as RemovalId, scope: 'scripted:two' as ScopeId }
      await tx.db
        .insertInto('removals')
        .values({ ...row, ...other })
        .execute()
    })
    await expect(readReceipt(engine.context, root, key)).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringMatching(
        /in several accounts: name what you mean by its removal, rm_.* in scripted:one, rm_0+ in scripted:two/,
      ) as string,
    })
  })
})
