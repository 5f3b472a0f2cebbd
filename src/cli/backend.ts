/** `leasehold backend add|list|remove`: a project's configuration of a provider. */
import type { Command } from 'commander'
import type { BackendView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { segment } from './support/http.ts'
import { examples, keyValue, withConnection, withJson } from './support/options.ts'
import { relative } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  defineAdd(command.command('add'), cli)

  const list = command
    .command('list')
    .summary('list backends')
    .description('Lists backends; secrets in their configuration are not shown.')
    .option('--project <project>', 'only of this project')
  withJson(withConnection(list))
  examples(list, 'backend list --project web')
  act(list, async (flags) => {
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    const { backends } = await client.get<{ backends: BackendView[] }>('/v1/backends', { query: { project: project as string } })
    const now = cli.io.now()
    cli.list(
      flags,
      backends,
      [
        { title: 'NAME', cell: (one) => one.name },
        { title: 'PROJECT', cell: (one) => one.project },
        { title: 'PROVIDER', cell: (one) => one.provider },
        { title: 'SCOPE', cell: (one) => one.scope },
        { title: 'DEFAULT', cell: (one) => (one.isDefault ? 'default' : '') },
        { title: 'CREATED', cell: (one) => relative(one.createdAt, now) },
        { title: 'DRAINING SINCE', cell: (one) => relative(one.deletedAt, now) },
      ],
      'no backends',
    )
  })

  const remove = command
    .command('remove')
    .alias('delete')
    .summary('remove a backend')
    .description('Removes a backend; what it still holds is drained first.')
  remove.argument('<name>').option('--project <project>', 'its project')
  withJson(withConnection(remove))
  examples(remove, 'backend remove lab --project web')
  act(remove, async (flags, name = '') => {
    const { client, settings } = await cli.session(flags)
    const { body } = await client.call<{ backend?: BackendView }>('DELETE', `/v1/backends/${segment(name)}`, {
      query: { project: settings.project.value },
    })
    cli.show(flags, body.backend ?? body, () => `backend ${name} is removed\n`)
  })
}

/** `true`, `3` and `"text"` are what they are in JSON; all else is text. */
const jsonOrText = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

const defineAdd = (command: Command, cli: Cli): void => {
  command
    .summary('add a backend')
    .description('Adds a backend to a project.')
    .argument('<name>')
    .option('--provider <provider>', 'its provider (needed), such as process')
    .option('--project <project>', 'the project that it is for')
    .option('--set <key=value>', "a setting of the provider; may be repeated. Secrets don't belong on a command line", keyValue)
    .option('--default', "make it the project's default")
  withJson(withConnection(command))
  examples(command, 'backend add lab --provider process --set graceSeconds=10 --default')
  act(command, async (flags, name = '') => {
    if (!flags['provider']) throw usageError('say which: --provider PROVIDER')
    const { client, settings } = await cli.session(flags)
    const set = Object.entries((flags['set'] ?? {}) as Record<string, string>).map(([key, value]) => [key, jsonOrText(value)])
    const body = {
      name,
      provider: flags['provider'],
      ...(settings.project.value === null ? {} : { project: settings.project.value }),
      ...(set.length === 0 ? {} : { config: Object.fromEntries(set) as Record<string, unknown> }),
      ...(flags['default'] ? { isDefault: true } : {}),
    }
    const { backend } = (await client.call<{ backend: BackendView }>('POST', '/v1/backends', { body })).body
    cli.show(
      flags,
      backend,
      () => `backend ${backend.name} of project ${backend.project} is added${backend.isDefault ? ', as its default' : ''}\n`,
    )
  })
}
