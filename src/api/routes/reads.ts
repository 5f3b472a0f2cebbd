/** What is there and what happened: instances, findings, events. */
import { Type } from 'typebox'
import { createFeedWatch, getInstance, listFindings, listInstances, readFeed } from '../../engine/admin/index.ts'
import { errorText } from '../../lib/redact.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { answers, untilGone, type Api, type Wiring } from '../app.ts'
import { waitSeconds } from '../schemas/admin.ts'
import {
  answer,
  closed,
  countUnknown,
  defaultLimit,
  expected,
  limit,
  may,
  nothing,
  oneOf,
  ref,
  reportFilters,
  text,
  unknownCount,
  whole,
} from '../schemas/kinds.ts'
import { findingFilters } from '../schemas/sweeps.ts'
import { Event, Finding, Instance, instanceStates } from '../schemas/views.ts'

const tags = ['reads']
const project = may(text({ minLength: 1, description: 'Only of this project.' }))
const after = may(
  text({
    pattern: '^(newest|\\d{1,15})$',
    [expected]: 'the number of an event, or "newest"',
    description: 'Only what came after this event; `newest`: only what comes. Missing: from the beginning.',
  }),
)
const before = may(
  text({
    pattern: '^(newest|\\d{1,15})$',
    [expected]: 'the number of an event, or "newest"',
    description:
      'Backwards: the newest ones before this event, still oldest first; `newest`: the newest of all. Does not wait, and does not go with `after`.',
  }),
)
const target = may(text({ minLength: 1, description: 'Only about this id or name, which may be gone long since.' }))

export const readRoutes = (app: Api, { context, closing }: Wiring): void => {
  const watch = createFeedWatch(context.store, (error) =>
    context.log.warn({ error: errorText(error) }, 'the feed could not be looked at; trying again'),
  )

  app.get(
    '/v1/instances',
    {
      schema: {
        operationId: 'listInstances',
        summary: 'List instances, newest first',
        tags,
        querystring: closed({ state: may(oneOf(instanceStates)), project, ...reportFilters, limit: limit() }),
        response: answers({
          200: answer('The instances that this token may see.', { instances: Type.Array(ref(Instance)), unknown: unknownCount() }),
        }),
      },
    },
    async (request) => {
      const instances = await listInstances(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit })
      return { instances, unknown: countUnknown(instances) }
    },
  )

  app.get(
    '/v1/instances/:id',
    {
      schema: {
        operationId: 'getInstance',
        summary: 'Read an instance, by id or ref',
        tags,
        params: closed({ id: text({ minLength: 1, description: 'An id or a ref.' }) }),
        querystring: nothing,
        response: answers({ 200: answer('The instance.', { instance: ref(Instance) }) }),
      },
    },
    async (request) => ({ instance: await getInstance(context, request.actor, request.params.id) }),
  )

  app.get(
    '/v1/findings',
    {
      schema: {
        operationId: 'listFindings',
        summary: 'List findings, last seen first',
        tags,
        querystring: closed({ state: may(oneOf(['open', 'resolved'])), ...findingFilters, ...reportFilters, project, limit: limit() }),
        response: answers({ 200: answer('What needs time or a person.', { findings: Type.Array(ref(Finding)), unknown: unknownCount() }) }),
      },
    },
    async (request) => {
      const findings = await listFindings(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit })
      return { findings, unknown: countUnknown(findings) }
    },
  )

  app.get(
    '/v1/events',
    {
      schema: {
        operationId: 'listEvents',
        summary: 'Read the feed of events, oldest first',
        description:
          'Go on with `after` set to `next`. With `waitSeconds` the answer comes with the first event, or empty when the time is over.',
        tags,
        querystring: closed({ after, before, limit: limit(), target, project, waitSeconds }),
        response: answers({ 200: answer('Events, and where to go on.', { events: Type.Array(ref(Event)), next: whole() }) }),
      },
    },
    async (request, reply) => {
      const { after: from = '0', before: until, limit: most = defaultLimit, waitSeconds: wait = 0, ...filter } = request.query
      if (until !== undefined && request.query.after !== undefined)
        throw new LeaseholdError('bad_request', 'before: leave out one of before and after')
      const backwards = until === undefined ? {} : { before: until === 'newest' ? ('newest' as const) : Number(until) }
      const waiting = { waitMs: wait * 1000, signal: wait > 0 ? untilGone(reply, closing) : closing }
      return readFeed(context, watch, request.actor, {
        ...filter,
        ...waiting,
        ...backwards,
        after: from === 'newest' ? from : Number(from),
        limit: most,
      })
    },
  )
}
