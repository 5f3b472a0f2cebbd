import { afterEach, expect, it } from 'vitest'
import { explainKey } from '../../../src/engine/explain/index.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { AttemptId, ScopeId } from '../../../src/model/ids.ts'
import { leaseOn, makeEngine, root } from '../../support/engine.ts'
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
    await expect(look()).rejects.toMatchObject({
      code: 'bad_request',
      message: expect.stringMatching(/in several accounts: .*in scripted:two/) as string,
    })
  })
})
