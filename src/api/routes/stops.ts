/** What keeps things from being removed: holds and freezes. */
import { Type } from 'typebox'
import { addFreeze, addHold, listFreezes, listHolds, removeFreeze, removeHold } from '../../engine/admin/index.ts'
import { answers, type Api, type Wiring } from '../app.ts'
import { byId, byScope, freezeBody, holdBody, unfreezeBody } from '../schemas/admin.ts'
import { answer, closed, flag, may, nothing, ref, withoutNulls } from '../schemas/kinds.ts'
import { Freeze, Hold } from '../schemas/views.ts'

export const holdRoutes = (app: Api, { context }: Wiring): void => {
  const tags = ['holds']
  app.get(
    '/v1/holds',
    {
      schema: {
        operationId: 'listHolds',
        summary: 'List holds',
        tags,
        querystring: closed({ all: may(flag({ description: 'Removed and ended ones too.' })) }),
        response: answers({ 200: answer('Newest first.', { holds: Type.Array(ref(Hold)) }) }),
      },
    },
    async (request) => ({ holds: await listHolds(context, request.actor, request.query.all ?? false) }),
  )
  app.post(
    '/v1/holds',
    {
      schema: {
        operationId: 'addHold',
        summary: 'Keep something from being removed',
        tags,
        querystring: nothing,
        body: holdBody,
        response: answers({ 201: answer('The hold.', { hold: ref(Hold) }) }),
      },
    },
    async (request, reply) => {
      const hold = await addHold(context, request.actor, withoutNulls(request.body))
      reply.code(201)
      return { hold }
    },
  )
  app.delete(
    '/v1/holds/:id',
    {
      schema: {
        operationId: 'removeHold',
        summary: 'Remove a hold',
        tags,
        params: byId,
        querystring: nothing,
        response: answers({ 200: answer('The hold, removed.', { hold: ref(Hold) }) }),
      },
    },
    async (request) => ({ hold: await removeHold(context, request.actor, request.params.id) }),
  )
}

export const freezeRoutes = (app: Api, { context }: Wiring): void => {
  const tags = ['freezes']
  app.get(
    '/v1/freezes',
    {
      schema: {
        operationId: 'listFreezes',
        summary: 'List freezes',
        tags,
        querystring: nothing,
        response: answers({ 200: answer('By scope.', { freezes: Type.Array(ref(Freeze)) }) }),
      },
    },
    async (request) => ({ freezes: await listFreezes(context, request.actor) }),
  )
  app.post(
    '/v1/freezes',
    {
      schema: {
        operationId: 'addFreeze',
        summary: 'Stop every removal, or those of a scope',
        tags,
        querystring: nothing,
        body: freezeBody,
        response: answers({ 201: answer('The freeze.', { freeze: ref(Freeze) }) }),
      },
    },
    async (request, reply) => {
      const freeze = await addFreeze(context, request.actor, withoutNulls(request.body))
      reply.code(201)
      return { freeze }
    },
  )
  app.delete(
    '/v1/freezes/:scope',
    {
      schema: {
        operationId: 'removeFreeze',
        summary: 'Let removals go on',
        tags,
        params: byScope,
        querystring: nothing,
        body: unfreezeBody,
        response: answers({ 200: answer('The freeze that was lifted.', { freeze: ref(Freeze) }) }),
      },
    },
    async (request) => ({ freeze: await removeFreeze(context, request.actor, request.params.scope, withoutNulls(request.body).reason) }),
  )
}
