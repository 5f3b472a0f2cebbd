/** `leasehold project create|list|delete`. */
import type { Command } from 'commander'
import type { ProjectView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { segment } from './support/http.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { relative } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  const create = command.command('create').summary('make a project').description('Makes a project.').argument('<name>')
  withJson(withConnection(create))
  examples(create, 'project create web')
  act(create, async (flags, name = '') => {
    const { client } = await cli.session(flags)
    const { project } = (await client.call<{ project: ProjectView }>('POST', '/v1/projects', { body: { name } })).body
    cli.show(flags, project, () => `project ${project.name} is made\n`)
  })

  const list = command.command('list').summary('list projects').description('Lists projects.')
  withJson(withConnection(list))
  examples(list, 'project list --json')
  act(list, async (flags) => {
    const { client } = await cli.session(flags)
    const { projects } = await client.get<{ projects: ProjectView[] }>('/v1/projects')
    const now = cli.io.now()
    cli.list(
      flags,
      projects,
      [
        { title: 'NAME', cell: (one) => one.name },
        { title: 'DEFAULT BACKEND', cell: (one) => one.defaultBackend },
        { title: 'CREATED', cell: (one) => relative(one.createdAt, now) },
        { title: 'DELETED', cell: (one) => relative(one.deletedAt, now) },
      ],
      'no projects',
    )
  })

  const remove = command
    .command('delete')
    .summary('delete a project')
    .description('Deletes a project that owns nothing live any more.')
    .argument('<name>')
  withJson(withConnection(remove))
  examples(remove, 'project delete web')
  act(remove, async (flags, name = '') => {
    const { client } = await cli.session(flags)
    const { body } = await client.call<{ project?: ProjectView }>('DELETE', `/v1/projects/${segment(name)}`)
    cli.show(flags, body.project ?? body, () => `project ${name} is deleted\n`)
  })
}
