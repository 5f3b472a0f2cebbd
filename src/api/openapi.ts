/** `/openapi.json` from the very schemas that validate. */
import swagger from '@fastify/swagger'
import type { Api } from './app.ts'

interface Operation {
  requestBody?: { required?: boolean; content?: Record<string, { schema?: { required?: string[] } }> }
}

/** A body without a field that must be there may be left out; the plugin calls every body required. */
const bodyMayBeMissing = (operation: Operation): void => {
  const { requestBody } = operation
  if (requestBody) requestBody.required = (requestBody.content?.['application/json']?.schema?.required ?? []).length > 0
}

/** The document, once every route is there. */
export const apiDocument = (app: Api): string => {
  const document = app.swagger()
  for (const path of Object.values(document.paths ?? {}))
    for (const operation of Object.values(path as Record<string, Operation>)) bodyMayBeMissing(operation)
  return JSON.stringify(document)
}

export const describeApi = async (app: Api, version: string): Promise<void> => {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Leasehold',
        version,
        description:
          'Leases of resources that are taken back. Errors are `{error, message, …}` with a stable code; times are ISO 8601 UTC with milliseconds; unknown fields are refused.',
        license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      },
      servers: [{ url: '/' }],
      components: {
        securitySchemes: {
          bearer: {
            type: 'http',
            scheme: 'bearer',
            description: "A token (`lhx_…`), or a lease's own (`lht_…`) for its heartbeat and release.",
          },
        },
      },
      security: [{ bearer: [] }],
      tags: [
        { name: 'leases' },
        { name: 'reads', description: 'What is there and what happened.' },
        { name: 'admin', description: 'Leases of others.' },
        { name: 'tokens' },
        { name: 'projects' },
        { name: 'backends' },
        { name: 'holds', description: 'A person\'s "not this".' },
        { name: 'fleets', description: 'Boxes that are kept ready.' },
        { name: 'freezes', description: 'The stop switch.' },
        { name: 'removals', description: 'What is taken back, how far it is, and what a person says of it.' },
        { name: 'sweeps', description: 'What listings show, what is concluded from it, and why.' },
        { name: 'service', description: 'The coordinator itself.' },
      ],
    },
    refResolver: { buildLocalReference: (json, _baseUri, _fragment, i) => (typeof json['$id'] === 'string' ? json['$id'] : `Schema${i}`) },
  })
}
