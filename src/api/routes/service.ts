/** The coordinator about itself: alive, ready, its state, what the doctor says, and this API's own description. */
import { Type } from 'typebox'
import { databaseTrouble, readStatus, runDoctor } from '../../engine/admin/index.ts'
import { withDeadline } from '../../lib/deadline.ts'
import { errorText } from '../../lib/redact.ts'
import { answers, type Api, type Wiring } from '../app.ts'
import { apiDocument } from '../openapi.ts'
import { answer, anything, nothing, oneOf, ref } from '../schemas/kinds.ts'
import { Check, ErrorAnswer, Status } from '../schemas/views.ts'

const tags = ['service']
const readyDeadlineMs = 3_000

export const serviceRoutes = (app: Api, { context, engine, version, metrics, dataFolder, closing }: Wiring): void => {
  app.get(
    '/v1/health',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'health',
        summary: 'Does the process answer?',
        tags,
        security: [],
        querystring: nothing,
        response: answers({ 200: answer('It does.', { status: oneOf(['ok']) }) }),
      },
    },
    async () => ({ status: 'ok' }),
  )

  const trouble = async (): Promise<{ error: string; message: string } | null> => {
    const database = await withDeadline('the database', readyDeadlineMs, closing, () => databaseTrouble(context)).catch(errorText)
    if (database !== null) return { error: 'database_unavailable', message: 'the database does not answer' }
    return (await engine.ready())
      ? null
      : { error: 'not_ready', message: 'the pipelines do not run: the coordinator is starting or stopping' }
  }

  app.get(
    '/v1/ready',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'ready',
        summary: 'Does the database answer, and do the pipelines run?',
        tags,
        security: [],
        querystring: nothing,
        response: answers({ 200: answer('They do.', { status: oneOf(['ready']) }), 503: ref(ErrorAnswer) }),
      },
    },
    async (_request, reply) => {
      const found = await trouble()
      if (found === null) return { status: 'ready' }
      reply.code(503).header('retry-after', '2')
      return found
    },
  )

  app.get(
    '/v1/status',
    {
      schema: {
        operationId: 'status',
        summary: 'The state of the coordinator',
        tags,
        querystring: nothing,
        response: answers({ 200: answer('Its state.', { status: ref(Status) }) }),
      },
    },
    async (request) => ({ status: await readStatus(context, request.actor, { version, expiryPaused: engine.awake.paused() }) }),
  )

  app.get(
    '/v1/doctor',
    {
      schema: {
        operationId: 'doctor',
        summary: 'What works and what does not, with a remedy each',
        tags,
        querystring: nothing,
        response: answers({ 200: answer('One check each.', { checks: Type.Array(ref(Check)) }) }),
      },
    },
    async (request) => ({ checks: await runDoctor(context, request.actor, dataFolder) }),
  )

  app.get(
    '/metrics',
    {
      schema: {
        operationId: 'metrics',
        summary: 'The metrics, for Prometheus',
        description: 'What this process counts is only for tokens of all projects.',
        tags,
        querystring: nothing,
        response: answers({ 200: anything({ description: 'Text, in the exposition format of Prometheus' }) }),
      },
    },
    async ({ actor }, reply) => {
      const status = await readStatus(context, actor, { version, expiryPaused: engine.awake.paused() })
      reply.type(metrics.contentType).serializer((body: unknown) => body as string)
      return metrics.render(status, actor.project === null)
    },
  )

  let document: string | undefined
  app.get(
    '/openapi.json',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'openapi',
        summary: 'This document',
        tags,
        security: [],
        querystring: nothing,
        response: answers({ 200: anything({ description: 'OpenAPI 3.1' }) }),
      },
    },
    async (_request, reply) => {
      document ??= apiDocument(app)
      reply.type('application/json; charset=utf-8').serializer((body: unknown) => body as string)
      return document
    },
  )
}
