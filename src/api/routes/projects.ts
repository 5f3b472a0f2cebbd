/** Projects and their backends. */
import { Type } from 'typebox'
import { addBackend, createProject, deleteBackend, deleteProject, listBackends, listProjects } from '../../engine/admin/index.ts'
import { answers, type Api, type Wiring } from '../app.ts'
import { backendBody, byName, ofProject, projectBody } from '../schemas/admin.ts'
import { answer, nothing, ref, withoutNulls } from '../schemas/kinds.ts'
import { Backend, Project } from '../schemas/views.ts'

export const projectRoutes = (app: Api, { context }: Wiring): void => {
  const tags = ['projects']
  app.get(
    '/v1/projects',
    {
      schema: {
        operationId: 'listProjects',
        summary: 'List projects',
        tags,
        querystring: nothing,
        response: answers({ 200: answer('By name; deleted ones too.', { projects: Type.Array(ref(Project)) }) }),
      },
    },
    async (request) => ({ projects: await listProjects(context, request.actor) }),
  )
  app.post(
    '/v1/projects',
    {
      schema: {
        operationId: 'createProject',
        summary: 'Make a project',
        tags,
        querystring: nothing,
        body: projectBody,
        response: answers({ 201: answer('The project.', { project: ref(Project) }) }),
      },
    },
    async (request, reply) => {
      const project = await createProject(context, request.actor, request.body.name)
      reply.code(201)
      return { project }
    },
  )
  app.delete(
    '/v1/projects/:name',
    {
      schema: {
        operationId: 'deleteProject',
        summary: 'Delete a project that has no live lease',
        description: 'It drains: its backends stay until nothing of ours is left there. `default` is never deleted.',
        tags,
        params: byName,
        querystring: nothing,
        response: answers({ 200: answer('The project, deleted.', { project: ref(Project) }) }),
      },
    },
    async (request) => ({ project: await deleteProject(context, request.actor, request.params.name) }),
  )
}

export const backendRoutes = (app: Api, { context }: Wiring): void => {
  const tags = ['backends']
  app.get(
    '/v1/backends',
    {
      schema: {
        operationId: 'listBackends',
        summary: 'List backends',
        tags,
        querystring: ofProject,
        response: answers({ 200: answer('By project and name; draining ones too.', { backends: Type.Array(ref(Backend)) }) }),
      },
    },
    async (request) => ({ backends: await listBackends(context, request.actor, request.query.project) }),
  )
  app.post(
    '/v1/backends',
    {
      schema: {
        operationId: 'addBackend',
        summary: 'Add a backend',
        description:
          'The account behind it is read back from the provider first; one that can not be read is refused with backend_unavailable.',
        tags,
        querystring: nothing,
        body: backendBody,
        response: answers({ 201: answer('The backend.', { backend: ref(Backend) }) }),
      },
    },
    async (request, reply) => {
      const backend = await addBackend(context, request.actor, withoutNulls(request.body))
      reply.code(201)
      return { backend }
    },
  )
  app.delete(
    '/v1/backends/:name',
    {
      schema: {
        operationId: 'deleteBackend',
        summary: 'Let a backend drain',
        description: 'It takes no new lease. Refused with in_use while live leases are on it.',
        tags,
        params: byName,
        querystring: ofProject,
        response: answers({ 200: answer('The backend, draining.', { backend: ref(Backend) }) }),
      },
    },
    async (request) => ({ backend: await deleteBackend(context, request.actor, request.params.name, request.query.project) }),
  )
}
