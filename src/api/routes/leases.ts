/** Leases as their holders see them (leases 2.1). */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import {
  accessTo,
  cancelCreate,
  createHeartbeat,
  createLease,
  getLease,
  listLeases,
  putLease,
  releaseLease,
  settledLease,
  type Created,
} from '../../engine/leases/index.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { isLeaseId } from '../../model/ids.ts'
import type { LeaseAnswer, LeaseView } from '../../model/wire.ts'
import { answers, untilGone, type Api, type Wiring } from '../app.ts'
import { answer, countUnknown, defaultLimit, may, nothing, oneOf, ref, text, unknownCount, withoutNulls } from '../schemas/kinds.ts'
import {
  Access,
  cancelBody,
  createBody,
  heartbeatBody,
  Holder,
  Lease,
  leaseId,
  leaseKey,
  leaseQuery,
  putBody,
  releaseBody,
} from '../schemas/leases.ts'

const tags = ['leases']
/** decisions, Defaults: 201 if active within 55 s, else 202. */
const waitMs = 55_000
const stepMs = 1_000

const oneLease = (description: string) => answer(description, { lease: ref(Lease) })
const created = (description: string) =>
  answer(description, {
    lease: ref(Lease),
    leaseToken: text({ description: 'May beat and release this lease, nothing else.' }),
    warnings: may(Type.Array(text())),
  })
const createAnswers = answers({
  200: created('The same request came before; the lease is active.'),
  201: created('Made and active.'),
  202: created('Made, and still provisioning: look again.'),
})

/** In steps, so that a closing server answers with what it knows. */
const settled = async (wiring: Wiring, lease: LeaseView, gone: AbortSignal): Promise<LeaseView> => {
  const end = performance.now() + waitMs
  for (let known = lease; ;) {
    const left = end - performance.now()
    if (known.state !== 'provisioning' || left <= 0 || gone.aborted) return known
    known = await settledLease(wiring.context, lease.id, Math.min(stepMs, left))
  }
}

const wantsNoWait = (request: FastifyRequest): boolean =>
  /(^|[,\s])respond-async($|[,;\s])/i.test([request.headers['prefer'] ?? ''].flat().join(','))

/** A create whose lease has ended meanwhile: the lease comes with the error. */
const refuseEnded = (lease: LeaseView, replayed: boolean): never => {
  if (lease.state === 'failed')
    throw new LeaseholdError('create_failed', `${lease.id} could not be made: ${lease.failureError ?? 'no reason recorded'}`, {
      failureCode: lease.failureCode,
      lease,
    })
  if (replayed)
    throw new LeaseholdError(
      'lease_ended',
      `${lease.id}, which this request made before, is ${lease.state}; send a new request for another`,
      { lease },
    )
  throw new LeaseholdError('lease_state_changed', `${lease.id} was ${lease.state} before it was ready`, { lease })
}

export const leaseRoutes = (app: Api, wiring: Wiring): void => {
  const { context } = wiring
  const beat = createHeartbeat(context)

  const answerCreate = async (request: FastifyRequest, reply: FastifyReply, made: Created): Promise<LeaseAnswer> => {
    // A replay is answered as it stands: whoever asks again looks again.
    const lease = made.replayed || wantsNoWait(request) ? made.lease : await settled(wiring, made.lease, untilGone(reply, wiring.closing))
    if (lease.state !== 'active' && lease.state !== 'provisioning') refuseEnded(lease, made.replayed)
    reply.code(lease.state === 'provisioning' ? 202 : made.replayed ? 200 : 201)
    return { lease, leaseToken: made.leaseToken, ...(made.warnings.length > 0 ? { warnings: made.warnings } : {}) }
  }

  app.post(
    '/v1/leases',
    {
      schema: {
        operationId: 'createLease',
        summary: 'Create a lease',
        description:
          'Waits up to 55 s for the box; with `Prefer: respond-async` not at all. `create_failed` carries failureCode and the lease.',
        tags,
        querystring: nothing,
        body: createBody,
        response: createAnswers,
      },
    },
    async (request, reply) => answerCreate(request, reply, await createLease(context, request.actor, withoutNulls(request.body))),
  )

  app.put(
    '/v1/leases/:id',
    {
      schema: {
        operationId: 'putLease',
        summary: 'Create a lease under an id of your own choice',
        description: 'Repeatable by its id: the same request answers the same lease, a different one is refused with lease_id_conflict.',
        tags,
        params: leaseId,
        querystring: nothing,
        body: putBody,
        response: createAnswers,
      },
    },
    async (request, reply) => {
      const { id } = request.params
      if (!isLeaseId(id))
        throw new LeaseholdError('bad_request', `id: must be lh_ and 12 lower-case hex digits, not ${JSON.stringify(id.slice(0, 60))}`)
      return answerCreate(request, reply, await putLease(context, request.actor, id, withoutNulls(request.body)))
    },
  )

  app.get(
    '/v1/leases',
    {
      schema: {
        operationId: 'listLeases',
        summary: 'List leases, newest first',
        tags,
        querystring: leaseQuery,
        response: answers({
          200: answer('The leases that this token may see.', { leases: Type.Array(ref(Lease)), unknown: unknownCount() }),
        }),
      },
    },
    async (request) => {
      const leases = await listLeases(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit })
      return { leases, unknown: countUnknown(leases) }
    },
  )

  app.get(
    '/v1/leases/:id',
    {
      schema: {
        operationId: 'getLease',
        summary: 'Read a lease',
        tags,
        params: leaseKey,
        querystring: nothing,
        response: answers({ 200: oneLease('The lease.') }),
      },
    },
    async (request) => ({ lease: await getLease(context, request.actor, request.params.id) }),
  )

  app.post(
    '/v1/leases/:id/heartbeat',
    {
      config: { access: 'lease' },
      schema: {
        operationId: 'heartbeat',
        summary: 'Say that a lease is in use',
        description: 'Refused once the end has come: nothing revives a lease.',
        tags,
        params: leaseKey,
        querystring: nothing,
        body: heartbeatBody,
        response: answers({ 200: oneLease('The lease, touched.') }),
      },
    },
    async (request) => ({ lease: await beat(request.actor, request.params.id, withoutNulls(request.body)) }),
  )

  app.post(
    '/v1/leases/:id/release',
    {
      config: { access: 'lease' },
      schema: {
        operationId: 'releaseLease',
        summary: 'Give a lease up',
        description: 'Does not wait for the removal: `cleanup.state` tells. Safe to repeat.',
        tags,
        params: leaseKey,
        querystring: nothing,
        body: releaseBody,
        response: answers({ 200: oneLease('The lease, released.') }),
      },
    },
    async (request) => ({ lease: await releaseLease(context, request.actor, request.params.id, withoutNulls(request.body)) }),
  )

  app.post(
    '/v1/leases/:id/cancel-create',
    {
      schema: {
        operationId: 'cancelCreate',
        summary: 'Cancel a create',
        description: 'Before, during or after it; a create that arrives later makes nothing.',
        tags,
        params: leaseId,
        querystring: nothing,
        body: cancelBody,
        response: answers({
          200: answer('Cancelled, for good.', {
            canceledCreate: Type.Object({
              version: Type.Integer(),
              requestedLeaseID: text(),
              createAttemptID: text(),
              state: oneOf(['canceled']),
            }),
            lease: may(ref(Lease)),
          }),
        }),
      },
    },
    async (request) => cancelCreate(context, request.actor, request.params.id, request.body.createAttemptID),
  )

  app.get(
    '/v1/leases/:id/access',
    {
      schema: {
        operationId: 'accessLease',
        summary: 'How to reach into the box',
        tags,
        params: leaseKey,
        querystring: nothing,
        response: answers({ 200: answer('The way in.', { access: ref(Access), holder: may(Holder) }) }),
      },
    },
    async (request) => accessTo(context, request.actor, request.params.id),
  )
}
