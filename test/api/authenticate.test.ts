import { expect, test } from 'vitest'
import { createAuthenticator } from '../../src/api/authenticate.ts'
import { createToken, revokeToken } from '../../src/engine/admin/index.ts'
import { eachStore } from '../support/stores.ts'
import { gate } from '../support/scripted-provider.ts'
import { openOffice, root } from '../engine/admin/support.ts'

eachStore('what the API remembers of tokens', (open) => {
  test('a token is looked up once, and then known for a while', async () => {
    const store = await open()
    const { context } = await openOffice(store)
    const { secret } = await createToken(context, root, { name: 'ann', role: 'user', project: 'default' })
    const authenticator = createAuthenticator(context)
    const first = authenticator.identify(`Bearer ${secret}`)
    expect(first).toBeInstanceOf(Promise)
    const actor = { name: 'ann', role: 'user', project: 'default', onlyLease: null }
    expect(await first).toEqual(actor)
    expect(authenticator.identify(`Bearer ${secret}`)).toEqual(actor)
    authenticator.forget()
    expect(authenticator.identify(`Bearer ${secret}`)).toBeInstanceOf(Promise)
  })

  test('a look-up that a revocation overtook is not remembered', async () => {
    const store = await open()
    const { context } = await openOffice(store)
    const { token, secret } = await createToken(context, root, { name: 'ann', role: 'user', project: 'default' })
    const authenticator = createAuthenticator(context)
    const [looked, hanging] = [gate(), gate()]
    const read = store.read.bind(store)
    store.read = async (body) => {
      const found = await read(body)
      looked.open()
      await hanging.promise
      return found
    }
    const early = authenticator.identify(`Bearer ${secret}`)
    await looked.promise
    Reflect.deleteProperty(store, 'read')
    await revokeToken(context, root, token.id)
    authenticator.forget()
    hanging.open()
    expect(await early).toMatchObject({ name: 'ann' })
    await expect(Promise.resolve(authenticator.identify(`Bearer ${secret}`))).rejects.toMatchObject({ code: 'unauthorized' })
  })
})
