/**
 * The HTTP API. A handler parses, calls one function of the engine, and renders; schemas validate, and make `/openapi.json`.
 * Not in here: listening, TLS, and what is behind the engine's functions.
 */
import helmet from '@fastify/helmet'
import { fastify, type FastifyRequest } from 'fastify'
import { requireFull, type Actor } from '../engine/actor.ts'
import type { EngineContext, Log } from '../engine/context.ts'
import { hex } from '../lib/ids.ts'
import { LeaseholdError } from '../model/errors.ts'
import type { Api, EngineState, SchemaTypes, Wiring } from './app.ts'
import { createAuthenticator } from './authenticate.ts'
import { createErrorHandler, largestBody, rawBadRequest } from './errors.ts'
import { createHostCheck } from './host-check.ts'
import { describeApi } from './openapi.ts'
import { adminLeaseRoutes } from './routes/admin-leases.ts'
import { installationRoutes } from './routes/installation.ts'
import { leaseRoutes } from './routes/leases.ts'
import { backendRoutes, projectRoutes } from './routes/projects.ts'
import { readRoutes } from './routes/reads.ts'
import { serviceRoutes } from './routes/service.ts'
import { fleetRoutes } from './routes/fleets.ts'
import { freezeRoutes, holdRoutes } from './routes/stops.ts'
import { auditRoutes } from './routes/audit.ts'
import { planRoutes } from './routes/plans.ts'
import { removalRoutes } from './routes/removals.ts'
import { sweepRoutes } from './routes/sweeps.ts'
import { tokenRoutes } from './routes/tokens.ts'
import { Access, Lease } from './schemas/leases.ts'
import { installationComponents } from './schemas/installation.ts'
import { planComponents } from './schemas/plans.ts'
import { removalComponents } from './schemas/removals.ts'
import { auditComponents } from './schemas/audit.ts'
import { sweepComponents } from './schemas/sweeps.ts'
import { shared } from './schemas/views.ts'
import { createSignInFailures } from './sign-in-failures.ts'
import { createMetrics, type Metrics } from '../telemetry/metrics.ts'
import { validatorCompiler } from './validate.ts'

export type { Api, EngineState } from './app.ts'

export interface ApiOptions {
  context: EngineContext
  engine: EngineState
  version: string
  log: Log
  /** What the engine tells of is in here; missing: only what the database shows. */
  metrics?: Metrics
  /** The address that it will listen on; on loopback only its names are answered to. Default 127.0.0.1. */
  host?: string
  /** For the doctor to look at. */
  dataFolder?: string
}

const routeNotFound = (request: FastifyRequest): LeaseholdError =>
  new LeaseholdError(
    'route_not_found',
    `there is no ${request.method} ${(request.url.split('?')[0] as string).slice(0, 100)}; /openapi.json lists what there is`,
  )

/** Before anything else: an id for every answer, the host, and whether there is such a route. */
const addFirstLook = (app: Api, host: string): void => {
  const checkHost = createHostCheck(host)
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    reply.header('cache-control', 'no-store')
    try {
      checkHost(request.headers.host)
      if (request.is404) throw routeNotFound(request)
    } catch (error) {
      return done(error as Error)
    }
    done()
  })
}

const addSignIn = (app: Api, context: EngineContext): (() => void) => {
  const authenticator = createAuthenticator(context)
  const failures = createSignInFailures()
  app.decorateRequest('actor', null as unknown as Actor)

  const admit = (request: FastifyRequest, actor: Actor): void => {
    if (request.routeOptions.config.access !== 'lease') requireFull(actor)
    request.actor = actor
  }
  const refuse = (request: FastifyRequest, error: unknown): unknown => {
    if (!(error instanceof LeaseholdError) || error.code !== 'unauthorized') return error
    const retryAfterSeconds = failures.count(request.ip)
    return retryAfterSeconds === 0
      ? error
      : new LeaseholdError('rate_limited', 'too many failed sign-ins from this address; valid tokens go on working', { retryAfterSeconds })
  }
  const admitLater = async (request: FastifyRequest, actor: Promise<Actor>, done: (error?: Error) => void): Promise<void> => {
    let problem: unknown
    try {
      admit(request, await actor)
    } catch (error) {
      problem = refuse(request, error)
    }
    done(problem as Error | undefined)
  }
  // With callbacks: a token that was seen lately is let in without waiting for anything.
  app.addHook('onRequest', (request, _reply, done) => {
    if (request.routeOptions.config.access === 'public') return done()
    try {
      const actor = authenticator.identify(request.headers.authorization)
      if (actor instanceof Promise) return void admitLater(request, actor, done)
      admit(request, actor)
    } catch (error) {
      return done(refuse(request, error) as Error)
    }
    done()
  })
  return () => authenticator.forget()
}

/** JSON only. An empty body is none, and a body that nobody reads is refused. */
const addBodies = (app: Api): void => {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string', bodyLimit: largestBody }, (request, body, done) => {
    if (body === '') return done(null, undefined)
    void parseJson(request, body as string, (error, value) =>
      done(error === null ? null : new LeaseholdError('bad_request', 'the body is not valid JSON'), value),
    )
  })
  app.addHook('preValidation', (request, _reply, done) => {
    // No database of ours stores it in text, and nobody means it.
    if (/%00/.test(request.url) || (request.body != null && JSON.stringify(request.body).includes('\\u0000')))
      return done(new LeaseholdError('bad_request', 'the request holds a NUL character, which is not taken anywhere'))
    const surplus = request.body !== undefined && request.body !== null && request.routeOptions.schema?.body === undefined
    done(surplus ? new LeaseholdError('bad_request', 'this route takes no body') : undefined)
  })
}

const addLog = (app: Api, log: Log): void => {
  app.addHook('onResponse', (request, reply, done) => {
    const facts = {
      requestId: request.id,
      method: request.method,
      route: request.routeOptions.url ?? null,
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 10) / 10,
    }
    log.debug({ ...facts, actor: request.actor?.name ?? null }, 'request')
    done()
  })
}

/** @returns the server, with all its routes and not listening yet: more may be added before it is ready. */
export const createApi = async (options: ApiOptions): Promise<Api> => {
  const { context, engine, version, log, host = '127.0.0.1' } = options
  const closing = new AbortController()
  const server = fastify({
    genReqId: () => `rq_${hex(10)}`,
    bodyLimit: largestBody,
    return503OnClosing: false,
    routerOptions: { maxParamLength: 500 },
    frameworkErrors: (error, request, reply) => handleError(error, request, reply),
    clientErrorHandler: (error, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
      else socket.end(rawBadRequest(error.code === 'HPE_HEADER_OVERFLOW' ? 431 : error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 408 : 400))
    },
  })
  const handleError = createErrorHandler(log)
  const app: Api = server.withTypeProvider<SchemaTypes>()
  app.setErrorHandler(handleError)
  app.setValidatorCompiler(validatorCompiler)
  // Compiled serializers cost 150 ms at start and save 0.4 µs per lease; that answers are what their schemas say, the tests hold.
  app.setSerializerCompiler(() => (body: unknown) => JSON.stringify(body))
  app.setNotFoundHandler((request) => {
    throw routeNotFound(request)
  })
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    // TLS ends in front of us, if at all: whoever ends it says so.
    strictTransportSecurity: false,
  })
  await describeApi(app, version)
  for (const schema of [
    Lease,
    Access,
    ...shared,
    ...sweepComponents,
    ...auditComponents,
    ...planComponents,
    ...removalComponents,
    ...installationComponents,
  ])
    app.addSchema(schema)
  addFirstLook(app, host)
  const forgetTokens = addSignIn(app, context)
  addBodies(app)
  addLog(app, log)
  app.addHook('preClose', (done) => {
    closing.abort()
    done()
  })
  const wiring: Wiring = {
    context,
    engine,
    version,
    metrics: options.metrics ?? createMetrics({ ofProcess: false }),
    dataFolder: options.dataFolder ?? null,
    closing: closing.signal,
    forgetTokens,
  }
  for (const add of [
    leaseRoutes,
    readRoutes,
    adminLeaseRoutes,
    tokenRoutes,
    projectRoutes,
    backendRoutes,
    fleetRoutes,
    holdRoutes,
    freezeRoutes,
    installationRoutes,
    sweepRoutes,
    planRoutes,
    removalRoutes,
    auditRoutes,
    serviceRoutes,
  ])
    add(app, wiring)
  return app
}
