/** Tokens: made, listed, revoked. */
import { Type } from 'typebox'
import { createToken, listTokens, revokeToken } from '../../engine/admin/index.ts'
import { answers, type Api, type Wiring } from '../app.ts'
import { byId, ofProject, tokenBody } from '../schemas/admin.ts'
import { answer, may, nothing, ref, text, withoutNulls } from '../schemas/kinds.ts'
import { Token } from '../schemas/views.ts'

const tags = ['tokens']

export const tokenRoutes = (app: Api, { context, forgetTokens }: Wiring): void => {
  app.get(
    '/v1/tokens',
    {
      schema: {
        operationId: 'listTokens',
        summary: 'List tokens, without their secrets',
        tags,
        querystring: ofProject,
        response: answers({ 200: answer('Oldest first.', { tokens: Type.Array(ref(Token)) }) }),
      },
    },
    async (request) => ({ tokens: await listTokens(context, request.actor, request.query.project) }),
  )

  app.post(
    '/v1/tokens',
    {
      schema: {
        operationId: 'createToken',
        summary: 'Make a token',
        tags,
        querystring: nothing,
        body: tokenBody,
        response: answers({
          201: answer('The token.', {
            token: ref(Token),
            secret: text({ description: 'Shown this once: only its hash is kept.' }),
            warnings: may(Type.Array(text())),
          }),
        }),
      },
    },
    async (request, reply) => {
      const { warnings, ...made } = await createToken(context, request.actor, withoutNulls(request.body))
      reply.code(201)
      return { ...made, ...(warnings.length > 0 ? { warnings } : {}) }
    },
  )

  app.delete(
    '/v1/tokens/:id',
    {
      schema: {
        operationId: 'revokeToken',
        summary: 'Revoke a token, at once and for good',
        tags,
        params: byId,
        querystring: nothing,
        response: answers({ 200: answer('The token, revoked.', { token: ref(Token) }) }),
      },
    },
    async (request) => {
      const token = await revokeToken(context, request.actor, request.params.id)
      forgetTokens()
      return { token }
    },
  )
}
