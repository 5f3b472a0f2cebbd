/** What the files of routes share: the types of the server, of a request's asker, and what a handler works with. */
import type {
  FastifyBaseLogger,
  FastifyInstance,
  FastifyTypeProvider,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify'
import type { Static, TSchema } from 'typebox'
import type { Actor } from '../engine/actor.ts'
import type { EngineContext } from '../engine/context.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { ref } from './schemas/kinds.ts'
import { ErrorAnswer } from './schemas/views.ts'

/** Types of body, query and path come from their schemas. */
export interface SchemaTypes extends FastifyTypeProvider {
  validator: this['schema'] extends TSchema ? Static<this['schema']> : unknown
  serializer: unknown
}
export type Api = FastifyInstance<RawServerDefault, RawRequestDefaultExpression, RawReplyDefaultExpression, FastifyBaseLogger, SchemaTypes>

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks; not there on public routes. */
    actor: Actor
  }
  interface FastifyContextConfig {
    /** `public`: no token; `lease`: a lease's own token too; missing: a token. */
    access?: 'public' | 'lease'
  }
}

/** What only the running process knows. An `Engine` is one. */
export interface EngineState {
  /** Do the pipelines run? */
  ready(): boolean | Promise<boolean>
  awake: { /** Why expiry stands still, or null. */ paused(): string | null }
}

/** What handlers work with. */
export interface Wiring {
  context: EngineContext
  engine: EngineState
  version: string
  metrics: Metrics
  /** Looked at by the doctor; null: there is none to look at. */
  dataFolder: string | null
  /** Ends when the server closes: whoever waits answers then. */
  closing: AbortSignal
  /** After a revocation: nobody is let in by what was remembered. */
  forgetTokens: () => void
}

const error = ref(ErrorAnswer)
/** The answers of a route by status; every other one is an error. */
export const answers = <R extends Record<number, TSchema>>(responses: R): R & { default: TSchema } => ({ ...responses, default: error })

/** Ends when the client goes away or the server closes. */
export const untilGone = (reply: { raw: { once(event: 'close', listener: () => void): unknown } }, closing: AbortSignal): AbortSignal => {
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort())
  return AbortSignal.any([gone.signal, closing])
}
