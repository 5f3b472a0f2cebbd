/** Which installation this database is, and a person's word on which database is the true one. */
import { adoptInstallation, forkInstallation, readInstallationView, rotateKey } from '../../engine/admin/index.ts'
import { answers, type Api, type Wiring } from '../app.ts'
import { adoptBody, forkBody, Installation, reasonBody } from '../schemas/installation.ts'
import { answer, nothing, ref } from '../schemas/kinds.ts'

export const installationRoutes = (app: Api, { context }: Wiring): void => {
  const tags = ['installation']
  const response = answers({ 200: answer('The installation.', { installation: ref(Installation) }) })
  app.get(
    '/v1/installation',
    {
      schema: {
        operationId: 'installation',
        summary: 'Which installation this is, and what stops its removals',
        tags,
        querystring: nothing,
        response,
      },
    },
    async (request) => ({ installation: await readInstallationView(context, request.actor) }),
  )
  app.post(
    '/v1/installation/adopt',
    {
      schema: {
        operationId: 'adoptInstallation',
        summary: 'Go on with this database',
        tags,
        querystring: nothing,
        body: adoptBody,
        response,
      },
    },
    async (request) => ({ installation: await adoptInstallation(context, request.actor, request.body) }),
  )
  app.post(
    '/v1/installation/fork',
    {
      schema: {
        operationId: 'forkInstallation',
        summary: 'Make this database a new installation, which holds nothing',
        tags,
        querystring: nothing,
        body: forkBody,
        response,
      },
    },
    async (request) => ({
      installation: await forkInstallation(context, request.actor, { ...request.body, when: request.body.when ?? 'stopped' }),
    }),
  )
  app.post(
    '/v1/installation/keys',
    {
      schema: {
        operationId: 'rotateKey',
        summary: 'Make a new key for the keyed tag',
        tags,
        querystring: nothing,
        body: reasonBody,
        response,
      },
    },
    async (request) => ({ installation: await rotateKey(context, request.actor, request.body) }),
  )
}
