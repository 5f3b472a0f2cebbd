/** The API on a real store with a real engine and a scripted provider, and a way to call it that holds every answer to the published document. */
import { Compile, type Validator } from 'typebox/compile'
import type { TSchema } from 'typebox'
import { afterAll, beforeAll, expect } from 'vitest'
import { createApi, type Api } from '../../src/api/index.ts'
import { createToken, firstStart } from '../../src/engine/admin/index.ts'
import { silentLog, type Log } from '../../src/engine/context.ts'
import type { Actor } from '../../src/engine/actor.ts'
import { createEngine, type Engine } from '../../src/engine/engine.ts'
import type { LeaseAnswer, Role } from '../../src/model/wire.ts'
import { insertBackend } from '../../src/store/backends.ts'
import { insertProject } from '../../src/store/projects.ts'
import type { Store } from '../../src/store/store.ts'
import { createMetrics } from '../../src/telemetry/metrics.ts'
import { sqliteDatabase } from '../support/databases.ts'
import { scriptedProvider, testScope, type Scripted } from '../support/scripted-provider.ts'

export const root: Actor = { name: 'root', role: 'admin', project: null, onlyLease: null }

export interface Reply<T = Record<string, unknown>> {
  status: number
  body: T
  headers: Record<string, unknown>
}
export interface Call {
  /** null: none is sent. */
  token?: string | null
  headers?: Record<string, string>
}
export interface Bench {
  api: Api
  engine: Engine
  store: Store
  provider: Scripted
  /** The admin of every project. */
  admin: string
  token(role: Role, project: string | null, name?: string): Promise<string>
  /** A body that is a text is sent as it is. */
  // oxlint-disable-next-line typescript/no-explicit-any -- the published document has checked it
  call<T = Record<string, any>>(method: string, path: string, body?: unknown, options?: Call): Promise<Reply<T>>
  lease(body?: object, options?: Call): Promise<LeaseAnswer & { leaseToken: string }>
  close(): Promise<void>
}

interface Document {
  paths: Record<string, Record<string, { responses: Record<string, { content?: Record<string, { schema: object }> }> }>>
  components: { schemas: Record<string, object> }
}

/** References resolved, and every object closed that does not say otherwise: an answer shows what is published and nothing else. */
const strict = (node: unknown, components: Record<string, object>): unknown => {
  if (Array.isArray(node)) return node.map((one) => strict(one, components))
  if (typeof node !== 'object' || node === null) return node
  const reference = (node as { $ref?: string }).$ref
  if (reference !== undefined) return strict(components[reference.replace('#/components/schemas/', '')], components)
  const inner = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, strict(value, components)]))
  return inner['type'] === 'object' && inner['properties'] !== undefined && inner['additionalProperties'] === undefined
    ? { ...inner, additionalProperties: false }
    : inner
}

const createContract = (api: Api) => {
  const document = api.swagger() as unknown as Document
  const compiled = new Map<string, Validator>()
  const templates = Object.keys(document.paths).map((path) => ({
    path,
    pattern: new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`),
  }))
  return (method: string, url: string, status: number, body: unknown): void => {
    const [pathname = ''] = url.split('?')
    // A literal path goes before one with a parameter.
    const found = templates
      .filter(({ pattern }) => pattern.test(pathname))
      .toSorted((a, b) => a.path.split('{').length - b.path.split('{').length)[0]
    const responses = found && document.paths[found.path]?.[method.toLowerCase()]?.responses
    const schema =
      (responses?.[String(status)] ?? responses?.['default'])?.content?.['application/json']?.schema ?? document.components.schemas['Error']
    const key = `${method} ${found?.path} ${status}`
    const validator = compiled.get(key) ?? (Compile(strict(schema, document.components.schemas) as TSchema) as Validator)
    compiled.set(key, validator)
    if (!validator.Check(body))
      expect.fail(`${key} does not answer what is published: ${JSON.stringify(validator.Errors(body))}\n${JSON.stringify(body)}`)
  }
}

export interface BenchOptions {
  log?: Log
  host?: string
  /** false: the pipelines stand still. */
  start?: boolean
}

/** Projects `default` and `other`, each with a backend of its own account. */
export const makeBench = async (store: Store, options: BenchOptions = {}): Promise<Bench> => {
  const log = options.log ?? silentLog
  // Under the name of the first backend's provider, so that the first start is the real one.
  const provider = scriptedProvider('process')
  const metrics = createMetrics({ ofProcess: false })
  const engine = await createEngine({ store, providers: [provider], log, meter: metrics, version: 'test', watchClocks: false })
  const { adminToken } = await firstStart(engine.context)
  await store.write(async (tx) => {
    await tx.db.updateTable('backends').set({ scope: testScope }).execute()
    await insertProject(tx, 'other')
    await insertBackend(tx, {
      project: 'other',
      name: 'local',
      provider: 'process',
      config: JSON.stringify({ account: 'scripted:two' }),
      scope: 'scripted:two' as typeof testScope,
      is_default: 1,
    })
  })
  if (options.start ?? true) await engine.start()
  const api = await createApi({
    context: engine.context,
    engine,
    version: 'test',
    log,
    metrics,
    ...(options.host === undefined ? {} : { host: options.host }),
  })
  await api.ready()
  const admin = adminToken as string
  const check = createContract(api)

  const call: Bench['call'] = async <T>(method: string, path: string, body?: unknown, { token = admin, headers = {} }: Call = {}) => {
    const response = await api.inject({
      method: method as 'GET',
      url: path,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: body as string }),
    })
    const isJson = String(response.headers['content-type']).startsWith('application/json')
    const answer = (response.body === '' || !isJson ? {} : response.json()) as T
    if (path !== '/openapi.json' && path !== '/metrics') check(method, path, response.statusCode, answer)
    return { status: response.statusCode, body: answer, headers: response.headers }
  }
  return {
    api,
    engine,
    store,
    provider,
    admin,
    call,
    token: async (role, project, name = `${role}-${project ?? 'all'}`) =>
      (await createToken(engine.context, root, { name, role, project })).secret,
    async lease(body = {}, callOptions = {}) {
      const { status, body: answer } = await call<LeaseAnswer & { leaseToken: string }>('POST', '/v1/leases', body, callOptions)
      expect(status, JSON.stringify(answer)).toBe(201)
      return answer
    },
    async close() {
      await api.close()
      await engine.stop(1_000)
    },
  }
}

/** One bench on SQLite for a whole suite: for what has nothing to do with the database. */
export const benchForAll = (options: BenchOptions = {}): (() => Bench) => {
  let bench: Bench | undefined
  const database = sqliteDatabase()
  beforeAll(async () => {
    bench = await makeBench(await database.open(), options)
  })
  afterAll(async () => {
    await bench?.close()
    await bench?.store.close()
    await database.drop()
  })
  return () => bench as Bench
}
