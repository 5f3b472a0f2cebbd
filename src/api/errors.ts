/** Every error leaves as `{error, message, …details}` with a code of the registry; what nobody foresaw leaves without details and is logged. */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../engine/context.ts'
import { errorText, redact } from '../lib/redact.ts'
import { LeaseholdError } from '../model/errors.ts'
import { isDatabaseUnavailable } from './database-errors.ts'

export const largestBody = 256 * 1024

/** Fastify's own refusals, in our words. */
const translate = (error: FastifyError): LeaseholdError | null => {
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new LeaseholdError('payload_too_large', `the body is larger than ${largestBody / 1024} KiB`)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return new LeaseholdError('unsupported_media_type', 'a body must be JSON: send it with content-type: application/json')
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return new LeaseholdError('bad_request', 'the body is not as long as content-length says')
    default:
      return error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500
        ? new LeaseholdError('bad_request', redact(error.message))
        : null
  }
}

const known = (error: unknown): LeaseholdError | null => {
  if (error instanceof LeaseholdError) return error
  // What came in broken has a status; a client that goes away in the middle of its body looks like a broken connection otherwise.
  const refusal = error instanceof Error ? translate(error as FastifyError) : null
  if (refusal !== null) return refusal
  return isDatabaseUnavailable(error)
    ? new LeaseholdError('database_unavailable', 'the database does not answer; try again in a moment')
    : null
}

export const createErrorHandler =
  (log: Log) =>
  (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const refusal =
      known(error) ?? new LeaseholdError('internal', `something went wrong here; the coordinator's log has more under ${request.id}`)
    const facts = {
      requestId: request.id,
      method: request.method,
      route: request.routeOptions.url ?? null,
      code: refusal.code,
      error: errorText(error),
    }
    if (refusal.status < 500) log.debug(facts, 'a request was refused')
    else log.error({ ...facts, stack: error instanceof Error ? redact(error.stack ?? '') : '' }, 'a request failed')
    // Also for what is refused before the hooks run.
    reply.header('x-request-id', request.id).header('cache-control', 'no-store')
    if (refusal.code === 'unauthorized')
      reply.header(
        'www-authenticate',
        request.headers.authorization === undefined ? 'Bearer realm="leasehold"' : 'Bearer realm="leasehold", error="invalid_token"',
      )
    if (refusal.status === 429 || refusal.code === 'database_unavailable')
      reply.header('retry-after', String(Number(refusal.details['retryAfterSeconds'] ?? 2)))
    // After the details, so that none of them can take the place of the code.
    reply.code(refusal.status).send({ ...refusal.details, error: refusal.code, message: refusal.message })
  }

/** What Node refuses before there is a request: it gets the same form. */
export const rawBadRequest = (status: 400 | 408 | 431): string => {
  const reasons = { 400: 'Bad Request', 408: 'Request Timeout', 431: 'Request Header Fields Too Large' }
  const body = JSON.stringify({
    error: 'bad_request',
    message: {
      400: 'this is no HTTP request that can be read',
      408: 'the request took too long to arrive',
      431: 'the headers are too large',
    }[status],
  })
  return `HTTP/1.1 ${status} ${reasons[status]}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
}
