/** Plans of removals, and their approval. */
import { Type } from 'typebox'
import { approvePlan, getPlan, listPlans, makePlans } from '../../engine/admin/index.ts'
import { answers, untilGone, type Api, type Wiring } from '../app.ts'
import { answer, defaultLimit, nothing, ref, withoutNulls } from '../schemas/kinds.ts'
import { approveBody, Plan, planBody, planId, planQuery } from '../schemas/plans.ts'

const tags = ['sweeps']
const many = (description: string) => answer(description, { plans: Type.Array(ref(Plan)) })
const one = (description: string) => answer(description, { plan: ref(Plan) })

export const planRoutes = (app: Api, { context, closing }: Wiring): void => {
  app.post(
    '/v1/plans',
    {
      schema: {
        operationId: 'makePlans',
        summary: 'Plan what could be taken back now, and begin nothing',
        description:
          'Lists each backend and writes down what has ended its quarantine, whatever mode and limits say. It waits for an approval.',
        tags,
        querystring: nothing,
        body: planBody,
        response: answers({ 200: many('One per backend that has something to take back.') }),
      },
    },
    async (request, reply) => ({
      plans: await makePlans(context, request.actor, withoutNulls(request.body), untilGone(reply, closing)),
    }),
  )

  app.get(
    '/v1/plans',
    {
      schema: {
        operationId: 'listPlans',
        summary: 'List plans, the newest first',
        tags,
        querystring: planQuery,
        response: answers({ 200: many('The plans that this token may see.') }),
      },
    },
    async (request) => ({
      plans: await listPlans(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit }),
    }),
  )

  app.get(
    '/v1/plans/:id',
    {
      schema: {
        operationId: 'getPlan',
        summary: 'Read a plan with the proof of each removal',
        tags,
        params: planId,
        querystring: nothing,
        response: answers({ 200: one('The plan.') }),
      },
    },
    async (request) => ({ plan: await getPlan(context, request.actor, request.params.id) }),
  )

  app.post(
    '/v1/plans/:id/approve',
    {
      schema: {
        operationId: 'approvePlan',
        summary: 'Approve exactly this plan',
        description:
          'For approvers and admins. A sweep is asked for, which begins what did not change since; the rest is dropped, and nothing is added.',
        tags,
        params: planId,
        querystring: nothing,
        body: approveBody,
        response: answers({ 200: one('The plan, approved.') }),
      },
    },
    async (request) => ({
      plan: await approvePlan(context, request.actor, request.params.id, request.body.reason.trim()),
    }),
  )
}
