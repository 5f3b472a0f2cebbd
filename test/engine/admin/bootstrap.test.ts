import { expect, test } from 'vitest'
import { createEngine } from '../../../src/engine/engine.ts'
import { firstStart, hashOfToken, listBackends, listProjects, listTokens, needsAdminToken } from '../../../src/engine/admin/index.ts'
import { silentLog } from '../../../src/engine/context.ts'
import { secret } from '../../../src/lib/ids.ts'
import { scriptedProvider } from '../../support/scripted-provider.ts'
import { eachStore } from '../../support/stores.ts'
import type { Store } from '../../../src/store/store.ts'
import { root } from './support.ts'

const contextOn = async (store: Store) =>
  (await createEngine({ store, providers: [scriptedProvider('process')], log: silentLog, version: 'test', watchClocks: false })).context

eachStore('the first start', (open, database) => {
  test('makes a project, a default backend and one admin token, whose hash alone is stored', async () => {
    const store = await open()
    const context = await contextOn(store)
    expect(await needsAdminToken(context)).toBe(true)
    const { adminToken } = await firstStart(context)
    expect(adminToken).toMatch(/^lhx_[A-Za-z0-9_-]{43}$/)
    expect(await listProjects(context, root)).toMatchObject([{ name: 'default', defaultBackend: 'local' }])
    expect(await listBackends(context, root)).toMatchObject([{ name: 'local', provider: 'process', isDefault: true }])
    expect(await listTokens(context, root)).toMatchObject([{ name: 'admin', role: 'admin', project: null, expiresAt: null }])
    const rows = await store.read((session) => session.db.selectFrom('tokens').selectAll().execute())
    expect(rows.map((row) => row.hash)).toEqual([hashOfToken(adminToken as string)])
    expect(JSON.stringify(rows)).not.toContain(adminToken)
    expect(await needsAdminToken(context)).toBe(false)
  })

  test('does nothing the second time, and brings back no backend that was deleted', async () => {
    const context = await contextOn(await open())
    await firstStart(context)
    await context.store.write((tx) => tx.db.deleteFrom('backends').execute())
    expect(await firstStart(context)).toEqual({ adminToken: null })
    expect(await listBackends(context, root)).toEqual([])
    expect(await listTokens(context, root)).toHaveLength(1)
  })

  test('takes a secret that is already in its file, and refuses one that is none of ours', async () => {
    const context = await contextOn(await open())
    await expect(firstStart(context, 'guessable')).rejects.toMatchObject({ code: 'bad_request' })
    const given = secret('lhx_')
    expect(await firstStart(context, given)).toEqual({ adminToken: given })
    expect(await firstStart(context, secret('lhx_'))).toEqual({ adminToken: null })
  })

  test('of several replicas at once makes one token', async () => {
    const shared = await database()
    const contexts = [await contextOn(await shared.open()), await contextOn(await shared.open()), await contextOn(await shared.open())]
    const made = await Promise.all(contexts.map((context) => firstStart(context)))
    expect(made.filter((one) => one.adminToken !== null)).toHaveLength(1)
    expect(await listTokens(contexts[0] as (typeof contexts)[number], root)).toHaveLength(1)
    expect(await listProjects(contexts[0] as (typeof contexts)[number], root)).toHaveLength(1)
  })
})
