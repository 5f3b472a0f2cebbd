/** Leases as administrators see them. */
import { Type } from 'typebox'
import { adminDelete, adminRelease, auditLeases } from '../../engine/admin/index.ts'
import { requireAdmin } from '../../engine/actor.ts'
import { listLeases } from '../../engine/leases/index.ts'
import { answers, untilGone, type Api, type Wiring } from '../app.ts'
import { answer, countUnknown, defaultLimit, nothing, ref, unknownCount, withoutNulls } from '../schemas/kinds.ts'
import { adminReleaseBody, debtQuery, Lease, leaseKey, leaseQuery } from '../schemas/leases.ts'
import { Audit } from '../schemas/views.ts'

const tags = ['admin']
const waitMs = 55_000
const oneLease = (description: string) => answer(description, { lease: ref(Lease) })

export const adminLeaseRoutes = (app: Api, { context, closing }: Wiring): void => {
  app.get(
    '/v1/admin/leases',
    {
      schema: {
        operationId: 'adminListLeases',
        summary: 'List the leases of every owner',
        tags,
        querystring: leaseQuery,
        response: answers({ 200: answer('Newest first.', { leases: Type.Array(ref(Lease)), unknown: unknownCount() }) }),
      },
    },
    async (request) => {
      requireAdmin(request.actor)
      const leases = await listLeases(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit })
      return { leases, unknown: countUnknown(leases) }
    },
  )

  app.get(
    '/v1/admin/lease-audit',
    {
      schema: {
        operationId: 'auditLeases',
        summary: 'Leases that still owe a removal, checked at their provider',
        description: 'Without `state`: those with a debt, live ones first. A provider that can not be read gives `cloudStatus: error`.',
        tags,
        querystring: debtQuery,
        response: answers({ 200: answer('A row per lease.', { audits: Type.Array(ref(Audit)) }) }),
      },
    },
    async (request) => ({
      audits: await auditLeases(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit }),
    }),
  )

  app.post(
    '/v1/admin/leases/:id/release',
    {
      schema: {
        operationId: 'adminReleaseLease',
        summary: "End anybody's lease",
        tags,
        params: leaseKey,
        querystring: nothing,
        body: adminReleaseBody,
        response: answers({ 200: oneLease('The lease, released.') }),
      },
    },
    async (request) => ({ lease: await adminRelease(context, request.actor, request.params.id, withoutNulls(request.body).delete) }),
  )

  app.post(
    '/v1/admin/leases/:id/delete',
    {
      schema: {
        operationId: 'adminDeleteLease',
        summary: "End anybody's lease, and wait up to 55 s until its box is gone",
        tags,
        params: leaseKey,
        querystring: nothing,
        body: nothing,
        response: answers({
          200: oneLease('The box is proved gone.'),
          202: oneLease('The removal goes on: `cleanup` tells how far it is.'),
        }),
      },
    },
    async (request, reply) => {
      const lease = await adminDelete(context, request.actor, request.params.id, waitMs, untilGone(reply, closing))
      reply.code(lease.cleanup.state === 'gone' ? 200 : 202)
      return { lease }
    },
  )
}
