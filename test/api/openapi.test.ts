import { describe, expect, test } from 'vitest'
import { Compile } from 'typebox/compile'
import { benchForAll } from './support.ts'

interface Operation {
  operationId?: string
  summary?: string
  security?: object[]
  parameters?: { name: string; in: string; required?: boolean; schema?: object }[]
  requestBody?: { required?: boolean; content: Record<string, { schema: Record<string, unknown> }> }
  responses: Record<string, { description?: string; content?: Record<string, { schema: object }> }>
}
interface Document {
  openapi: string
  info: { title: string; version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>; securitySchemes: Record<string, object> }
}

const referencesIn = (node: unknown): string[] => {
  if (Array.isArray(node)) return node.flatMap(referencesIn)
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([key, value]) => (key === '$ref' ? [String(value)] : referencesIn(value)))
}

describe('/openapi.json', () => {
  const bench = benchForAll({ start: false })
  const read = async (): Promise<Document> => (await bench().call<Document>('GET', '/openapi.json', undefined, { token: null })).body
  const operations = (document: Document) =>
    Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
    )

  test('is OpenAPI 3.1 with the names of the contract, and the same twice', async () => {
    const document = await read()
    expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'Leasehold', version: 'test' } })
    expect(await read()).toEqual(document)
    const names = operations(document).map(({ method, path }) => `${method.toUpperCase()} ${path}`)
    expect(names.toSorted()).toEqual(
      [
        'POST /v1/leases',
        'GET /v1/leases',
        'PUT /v1/leases/{id}',
        'GET /v1/leases/{id}',
        'POST /v1/leases/{id}/heartbeat',
        'POST /v1/leases/{id}/release',
        'POST /v1/leases/{id}/cancel-create',
        'GET /v1/leases/{id}/access',
        'GET /v1/instances',
        'GET /v1/instances/{id}',
        'GET /v1/findings',
        'GET /v1/events',
        'GET /v1/admin/leases',
        'GET /v1/admin/audit',
        'GET /v1/admin/audit/verify',
        'GET /v1/receipts/{key}',
        'GET /v1/admin/lease-audit',
        'POST /v1/admin/leases/{id}/release',
        'POST /v1/admin/leases/{id}/delete',
        'GET /v1/tokens',
        'POST /v1/tokens',
        'DELETE /v1/tokens/{id}',
        'GET /v1/projects',
        'POST /v1/projects',
        'DELETE /v1/projects/{name}',
        'GET /v1/backends',
        'POST /v1/backends',
        'DELETE /v1/backends/{name}',
        'GET /v1/fleets',
        'POST /v1/fleets',
        'PATCH /v1/fleets/{name}',
        'DELETE /v1/fleets/{name}',
        'GET /v1/holds',
        'POST /v1/holds',
        'DELETE /v1/holds/{id}',
        'GET /v1/freezes',
        'POST /v1/freezes',
        'DELETE /v1/freezes/{scope}',
        'POST /v1/sweeps',
        'GET /v1/plans',
        'GET /v1/plans/{id}',
        'POST /v1/plans',
        'POST /v1/plans/{id}/approve',
        'GET /v1/removals',
        'GET /v1/removals/{id}',
        'POST /v1/removals/{id}/acknowledge-absence',
        'POST /v1/removals/{id}/close',
        'GET /v1/sweeps',
        'GET /v1/sweeps/{id}',
        'GET /v1/explain/{key}',
        'GET /v1/status',
        'GET /v1/installation',
        'POST /v1/installation/adopt',
        'POST /v1/installation/fork',
        'POST /v1/installation/keys',
        'GET /v1/doctor',
        'GET /v1/health',
        'GET /v1/ready',
        'GET /openapi.json',
        'GET /metrics',
      ].toSorted(),
    )
  })

  test('gives every operation an id of its own, a summary, a described answer with a schema, and the error form', async () => {
    const all = operations(await read())
    expect(new Set(all.map(({ operation }) => operation.operationId)).size).toBe(all.length)
    for (const { path, method, operation } of all) {
      expect(operation.summary, `${method} ${path}`).toBeTruthy()
      const answers = Object.entries(operation.responses)
      expect(
        answers.some(([status]) => status.startsWith('2')),
        `${method} ${path}`,
      ).toBe(true)
      for (const [status, answer] of answers)
        expect(answer.content?.['application/json']?.schema, `${method} ${path} ${status}`).toBeDefined()
      expect(referencesIn(operation.responses['default'])).toEqual(['#/components/schemas/Error'])
    }
  })

  test('names the parameters that the paths have, and resolves every reference', async () => {
    const document = await read()
    for (const { path, method, operation } of operations(document)) {
      const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1])
      expect(operation.parameters?.filter((one) => one.in === 'path').map((one) => one.name) ?? [], `${method} ${path}`).toEqual(inPath)
    }
    const known = new Set(Object.keys(document.components.schemas).map((name) => `#/components/schemas/${name}`))
    expect(referencesIn(document).filter((reference) => !known.has(reference))).toEqual([])
  })

  test('has schemas that are JSON Schema, closed for every request, and says which bodies may be left out', async () => {
    const document = await read()
    const required: string[] = []
    for (const { path, method, operation } of operations(document)) {
      const schema = operation.requestBody?.content['application/json']?.schema
      if (!schema) continue
      expect(schema['additionalProperties'], `${method} ${path}`).toBe(false)
      expect(Compile(schema as never).Check(5)).toBe(false)
      if (operation.requestBody?.required) required.push(path)
    }
    expect(required.toSorted()).toEqual([
      '/v1/backends',
      '/v1/fleets',
      '/v1/freezes',
      '/v1/holds',
      '/v1/installation/adopt',
      '/v1/installation/fork',
      '/v1/installation/keys',
      '/v1/leases/{id}/cancel-create',
      '/v1/plans/{id}/approve',
      '/v1/projects',
      '/v1/removals/{id}/acknowledge-absence',
      '/v1/removals/{id}/close',
      '/v1/tokens',
    ])
  })

  test('asks for a token everywhere but on the public routes', async () => {
    const open = operations(await read()).filter(({ operation }) => operation.security?.length === 0)
    expect(open.map(({ path }) => path)).toEqual(['/v1/health', '/v1/ready', '/openapi.json'])
  })
})
