import { expect, test } from 'vitest'
import {
  addBackend,
  createProject,
  createToken,
  deleteBackend,
  deleteProject,
  listBackends,
  listProjects,
  listTokens,
  revokeToken,
} from '../../../src/engine/admin/index.ts'
import { createLease, releaseLease } from '../../../src/engine/leases/index.ts'
import { ConfigError } from '../../../src/providers/contract.ts'
import { eachStore } from '../../support/stores.ts'
import { actor, eventsOf, openOffice, root } from './support.ts'

eachStore('tokens, projects and backends', (open) => {
  test('a token of a name that somebody has already is made with a warning: both are one owner', async () => {
    const { context } = await openOffice(await open())
    const make = (project: string | null) => createToken(context, root, { name: 'ann', role: 'user', project })
    const first = await make('default')
    expect(first.warnings).toEqual([])
    expect((await make(null)).warnings).toEqual([expect.stringContaining(`${first.token.id} has the name "ann" too`) as string])
    // The twin: of another project it is another owner.
    const bob = (project: string) => createToken(context, root, { name: 'bob', role: 'user', project })
    await bob('default')
    expect((await bob('other')).warnings).toEqual([])
  })

  test('every change writes an event with its actor, in the project that it concerns (orphans R82, R85)', async () => {
    const { context } = await openOffice(await open())
    await createProject(context, root, 'web')
    await addBackend(context, root, { name: 'lab', project: 'web', provider: 'process' })
    const { token } = await createToken(context, root, { name: 'ci', role: 'user', project: 'web' })
    await revokeToken(context, root, token.id)
    await deleteBackend(context, root, 'lab', 'web')
    await deleteProject(context, root, 'web')
    for (const code of ['project.created', 'backend.created', 'token.created', 'token.revoked', 'backend.deleted', 'project.deleted']) {
      const [last] = (await eventsOf(context.store, code)).slice(-1)
      expect({ code, actor: last?.event.actor, project: last?.event.project }).toEqual({ code, actor: 'root', project: 'web' })
      expect(last?.targets).toHaveLength(1)
    }
  })

  test('a refused change leaves nothing behind, no row and no event', async () => {
    const { context } = await openOffice(await open())
    const before = (await eventsOf(context.store, 'project.created')).length
    await expect(createProject(context, root, 'other')).rejects.toMatchObject({ code: 'already_exists' })
    await expect(createProject(context, actor('admin', 'default'), 'mine')).rejects.toMatchObject({ code: 'forbidden' })
    expect(await eventsOf(context.store, 'project.created')).toHaveLength(before)
    expect((await listProjects(context, root)).map((one) => one.name)).toEqual(['default', 'other'])
  })

  test('the last token that administers everything can not be revoked; with another one it can', async () => {
    const { context } = await openOffice(await open())
    const [first] = await listTokens(context, root)
    await createToken(context, root, { name: 'local', role: 'admin', project: 'default' })
    await expect(revokeToken(context, root, first?.id as string)).rejects.toMatchObject({ code: 'in_use' })
    const { token } = await createToken(context, root, { name: 'second', role: 'admin' })
    expect((await revokeToken(context, root, first?.id as string)).revokedAt).not.toBeNull()
    await expect(revokeToken(context, root, token.id)).rejects.toMatchObject({ code: 'in_use' })
  })

  test('revoking twice keeps the first time and writes one event', async () => {
    const { context } = await openOffice(await open())
    const { token } = await createToken(context, root, { name: 'ci', role: 'user' })
    const once = await revokeToken(context, root, token.id)
    expect(await revokeToken(context, root, token.id)).toEqual(once)
    expect(await eventsOf(context.store, 'token.revoked')).toHaveLength(1)
  })

  test("an admin of one project neither sees nor revokes a token over all, or another project's", async () => {
    const { context } = await openOffice(await open())
    const local = actor('admin', 'default')
    const [global] = await listTokens(context, root)
    const { token: theirs } = await createToken(context, root, { name: 'theirs', role: 'user', project: 'other' })
    for (const id of [global?.id as string, theirs.id])
      await expect(revokeToken(context, local, id)).rejects.toMatchObject({ code: 'not_found' })
    const { token: mine } = await createToken(context, local, { name: 'mine', role: 'admin', project: null })
    expect(mine.project).toBe('default')
    expect((await listTokens(context, local)).map((one) => one.id)).toEqual([mine.id])
    expect((await revokeToken(context, local, mine.id)).revokedAt).not.toBeNull()
  })

  test('a project with a live lease is in use; without one it drains with its backends, and its name is not given again', async () => {
    const { context } = await openOffice(await open())
    const { lease } = await createLease(context, root, { project: 'other' })
    await expect(deleteProject(context, root, 'other')).rejects.toMatchObject({
      code: 'in_use',
      message: expect.stringContaining(lease.id),
    })
    await expect(deleteBackend(context, root, 'local', 'other')).rejects.toMatchObject({ code: 'in_use' })
    await releaseLease(context, root, lease.id, {})
    const deleted = await deleteProject(context, root, 'other')
    expect(deleted.deletedAt).not.toBeNull()
    expect(await deleteProject(context, root, 'other')).toEqual(deleted)
    expect(await listBackends(context, root, 'other')).toMatchObject([{ name: 'local', deletedAt: expect.any(String), isDefault: false }])
    await expect(createProject(context, root, 'other')).rejects.toMatchObject({ code: 'already_exists' })
    await expect(createLease(context, root, { project: 'other' })).rejects.toMatchObject({ code: 'bad_request' })
    await expect(createToken(context, root, { name: 'late', role: 'user', project: 'other' })).rejects.toMatchObject({
      code: 'bad_request',
    })
    await expect(addBackend(context, root, { name: 'late', provider: 'process', project: 'other' })).rejects.toMatchObject({
      code: 'bad_request',
    })
  })

  test('the project where nameless requests go is never deleted', async () => {
    const { context } = await openOffice(await open())
    await expect(deleteProject(context, root, 'default')).rejects.toMatchObject({ code: 'in_use' })
  })

  test('a backend is taken in with the account that its provider reports, and only then', async () => {
    const { context, provider } = await openOffice(await open())
    expect(await addBackend(context, root, { name: 'lab', provider: 'process', config: { region: 'here' } })).toMatchObject({
      scope: 'scripted:one',
      isDefault: false,
      config: { region: 'here' },
    })
    provider.scope = async () => ({ kind: 'unknown', error: 'no route to host' })
    await expect(addBackend(context, root, { name: 'dark', provider: 'process' })).rejects.toMatchObject({
      code: 'backend_unavailable',
      message: expect.stringContaining('no route to host'),
    })
    provider.scope = async () => {
      throw new Error('it fell over')
    }
    await expect(addBackend(context, root, { name: 'dark', provider: 'process' })).rejects.toMatchObject({ code: 'backend_unavailable' })
    provider.parseConfig = () => {
      throw new ConfigError('region must be text')
    }
    await expect(addBackend(context, root, { name: 'dark', provider: 'process' })).rejects.toMatchObject({
      code: 'bad_request',
      message: 'config: region must be text',
    })
    expect((await listBackends(context, root, 'default')).map((one) => one.name)).toEqual(['lab', 'local'])
  })

  test('a new default takes the place of the old one, also when its name turns out to be taken: then nothing changes', async () => {
    const { context } = await openOffice(await open())
    const defaults = async (): Promise<string[]> =>
      (await listBackends(context, root, 'default')).filter((one) => one.isDefault).map((one) => one.name)
    await addBackend(context, root, { name: 'lab', provider: 'process' })
    await expect(addBackend(context, root, { name: 'lab', provider: 'process', isDefault: true })).rejects.toMatchObject({
      code: 'already_exists',
    })
    expect(await defaults()).toEqual(['local'])
    await addBackend(context, root, { name: 'next', provider: 'process', isDefault: true })
    expect(await defaults()).toEqual(['next'])
    await deleteBackend(context, root, 'next')
    expect(await defaults()).toEqual([])
    expect(await addBackend(context, root, { name: 'third', provider: 'process' })).toMatchObject({ isDefault: true })
  })
})
