/** Boxes that are kept ready. */
import { Type } from 'typebox'
import { createFleet, deleteFleet, listFleets, scaleFleet } from '../../engine/admin/index.ts'
import { answers, type Api, type Wiring } from '../app.ts'
import { byName, fleetBody, fleetChangeBody, ofProject } from '../schemas/admin.ts'
import { answer, may, ref, nothing, text, withoutNulls } from '../schemas/kinds.ts'
import { Fleet } from '../schemas/views.ts'

export const fleetRoutes = (app: Api, { context }: Wiring): void => {
  const tags = ['fleets']
  app.get(
    '/v1/fleets',
    {
      schema: {
        operationId: 'listFleets',
        summary: 'List fleets',
        tags,
        querystring: ofProject,
        response: answers({ 200: answer('By project and name; draining ones too.', { fleets: Type.Array(ref(Fleet)) }) }),
      },
    },
    async (request) => ({ fleets: await listFleets(context, request.actor, request.query.project) }),
  )
  app.post(
    '/v1/fleets',
    {
      schema: {
        operationId: 'createFleet',
        summary: 'Keep boxes of a backend ready',
        tags,
        querystring: nothing,
        body: fleetBody,
        response: answers({ 201: answer('The fleet.', { fleet: ref(Fleet), warnings: may(Type.Array(text())) }) }),
      },
    },
    async (request, reply) => {
      const { fleet, warnings } = await createFleet(context, request.actor, withoutNulls(request.body))
      reply.code(201)
      return { fleet, ...(warnings.length > 0 ? { warnings } : {}) }
    },
  )
  app.patch(
    '/v1/fleets/:name',
    {
      schema: {
        operationId: 'scaleFleet',
        summary: 'Change how many are kept ready, pause a fleet, or let it go on',
        description: 'Any word but a pause ends a hold of the churn breaker.',
        tags,
        params: byName,
        querystring: ofProject,
        body: fleetChangeBody,
        response: answers({ 200: answer('The fleet, as it is from now on.', { fleet: ref(Fleet) }) }),
      },
    },
    async (request) => ({
      fleet: await scaleFleet(context, request.actor, request.params.name, withoutNulls(request.body), request.query.project),
    }),
  )
  app.delete(
    '/v1/fleets/:name',
    {
      schema: {
        operationId: 'deleteFleet',
        summary: 'Let a fleet drain',
        description: 'Nothing more is made, and what nobody holds is taken back. Leases on its boxes go on, and their boxes go with them.',
        tags,
        params: byName,
        querystring: ofProject,
        response: answers({ 200: answer('The fleet, draining.', { fleet: ref(Fleet) }) }),
      },
    },
    async (request) => ({ fleet: await deleteFleet(context, request.actor, request.params.name, request.query.project) }),
  )
}
