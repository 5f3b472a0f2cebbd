/** Sweeps on demand, their certificates, and why something is judged as it is. */
import { Type } from 'typebox'
import { dryRunSweep, getSweep, letCountsPass, listSweeps, requestSweep } from '../../engine/admin/index.ts'
import { explainKey } from '../../engine/explain/index.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { answers, untilGone, type Api, type Wiring } from '../app.ts'
import { answer, defaultLimit, nothing, ref, withoutNulls } from '../schemas/kinds.ts'
import { Explanation, explainKey as keyPath, Sweep, sweepBody, sweepId, sweepQuery } from '../schemas/sweeps.ts'

const tags = ['sweeps']
const waitMs = 55_000
const list = (description: string) => answer(description, { sweeps: Type.Array(ref(Sweep)) })

export const sweepRoutes = (app: Api, { context, closing }: Wiring): void => {
  app.post(
    '/v1/sweeps',
    {
      schema: {
        operationId: 'requestSweep',
        summary: 'Sweep one backend, or every one of a project, now',
        description:
          'Waits up to 55 s for the certificates; a sweep that takes longer goes on. With `dryRun` nothing is written, and the answer comes when the listing has ended. With `letPass` an operator lets one backend’s implausible counts pass, which is audited.',
        tags,
        querystring: nothing,
        body: sweepBody,
        response: answers({ 200: list('One per backend.'), 202: list('Some are still `pending`: read them later.') }),
      },
    },
    async (request, reply) => {
      const { dryRun = false, letPass, ...input } = withoutNulls(request.body)
      const gone = untilGone(reply, closing)
      if (letPass !== undefined) {
        if (dryRun) throw new LeaseholdError('bad_request', 'letPass: a dry run uses up nothing; leave out one of the two')
        const { backend, ...rest } = input
        if (backend === undefined) throw new LeaseholdError('bad_request', 'letPass: name the one backend whose counts may pass')
        await letCountsPass(context, request.actor, { ...rest, backend, reason: letPass })
      }
      if (dryRun) return { sweeps: await dryRunSweep(context, request.actor, input, gone) }
      const sweeps = await requestSweep(context, request.actor, input, waitMs, gone)
      reply.code(sweeps.some((one) => one.state === 'pending') ? 202 : 200)
      return { sweeps }
    },
  )

  app.get(
    '/v1/sweeps',
    {
      schema: {
        operationId: 'listSweeps',
        summary: 'List the certificates of sweeps, newest first',
        tags,
        querystring: sweepQuery,
        response: answers({ 200: list('The sweeps that this token may see.') }),
      },
    },
    async (request) => ({
      sweeps: await listSweeps(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit }),
    }),
  )

  app.get(
    '/v1/sweeps/:id',
    {
      schema: {
        operationId: 'getSweep',
        summary: 'Read the certificate of a sweep',
        tags,
        params: sweepId,
        querystring: nothing,
        response: answers({ 200: answer('The sweep.', { sweep: ref(Sweep) }) }),
      },
    },
    async (request) => ({ sweep: await getSweep(context, request.actor, request.params.id) }),
  )

  app.get(
    '/v1/explain/:key',
    {
      schema: {
        operationId: 'explain',
        summary: 'Why something is judged as it is',
        description: 'What no row of ours knows is looked at freshly, for operators: its location is listed, and nothing is written.',
        tags,
        params: keyPath,
        querystring: nothing,
        response: answers({ 200: answer('The explanation.', { explanation: ref(Explanation) }) }),
      },
    },
    async (request, reply) => ({ explanation: await explainKey(context, request.actor, request.params.key, untilGone(reply, closing)) }),
  )
}
