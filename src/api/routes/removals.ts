/** Removals, and what a person says of one that stands still. */
import { Type, type TSchema } from 'typebox'
import { acknowledgeAbsence, closeRemoval, getRemoval, listRemovals } from '../../engine/admin/index.ts'
import { answers, type Api, type Wiring } from '../app.ts'
import { answer, defaultLimit, nothing, ref } from '../schemas/kinds.ts'
import { acknowledgeBody, closeBody, Removal, removalId, removalQuery } from '../schemas/removals.ts'

const tags = ['removals']
const one = (description: string) => answer(description, { removal: ref(Removal) })

/** What a person says of one removal. */
const word = <Body extends TSchema>(
  body: Body,
  { answered, ...said }: { operationId: string; summary: string; description: string; answered: string },
) => ({
  schema: { ...said, tags, params: removalId, querystring: nothing, body, response: answers({ 200: one(answered) }) },
})

export const removalRoutes = (app: Api, { context }: Wiring): void => {
  app.get(
    '/v1/removals',
    {
      schema: {
        operationId: 'listRemovals',
        summary: 'List removals that are neither proved gone nor closed',
        tags,
        querystring: removalQuery,
        response: answers({ 200: answer('What is stuck first, then the oldest.', { removals: Type.Array(ref(Removal)) }) }),
      },
    },
    async (request) => ({
      removals: await listRemovals(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit }),
    }),
  )

  app.get(
    '/v1/removals/:id',
    {
      schema: {
        operationId: 'getRemoval',
        summary: 'Read a removal with its members and its next step',
        tags,
        params: removalId,
        querystring: nothing,
        response: answers({ 200: one('The removal.') }),
      },
    },
    async (request) => ({ removal: await getRemoval(context, request.actor, request.params.id) }),
  )

  app.post(
    '/v1/removals/:id/acknowledge-absence',
    word(acknowledgeBody, {
      operationId: 'acknowledgeAbsence',
      summary: 'Answer for what is gone, so that the removal goes on',
      description:
        'For approvers and admins. Bound to the fingerprint: a removal that changed meanwhile is refused. Each absence is read once more before anything else is touched.',
      answered: 'The removal, which goes on.',
    }),
    async (request) => ({ removal: await acknowledgeAbsence(context, request.actor, request.params.id, request.body) }),
  )

  app.post(
    '/v1/removals/:id/close',
    word(closeBody, {
      operationId: 'closeRemoval',
      summary: 'End a removal that was given up or waits for a person',
      description:
        'For approvers and admins. Nothing is proved by it; what it left is taken back only where a sweep finds it to be a whole group.',
      answered: 'The removal, closed, with what it leaves behind.',
    }),
    async (request) => ({ removal: await closeRemoval(context, request.actor, request.params.id, request.body) }),
  )
}
