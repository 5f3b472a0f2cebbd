/** `leasehold backend add|list|remove`: a project's configuration of a provider. */
import type { Command } from 'commander'
import type { BackendView } from '../model/wire.ts'
import { act, type Cli, type Flags } from './support/cli.ts'
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

/** Flags of `backend add` that stand for settings of the provider docker, because a path and an address need no quotes of JSON. */
const dockerFlags = [
  ['host', '--host <address>', "docker: the Engine's address: unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST"],
  ['tlsCa', '--tls-ca <file>', "docker, with tcp://: the authority's certificate, a file on the coordinator's machine"],
  ['tlsCert', '--tls-cert <file>', 'docker, with tcp://: the certificate to show'],
  ['tlsKey', '--tls-key <file>', 'docker, with tcp://: its key'],
  ['image', '--image <image>', 'docker: the image that boxes are made of; it must be on the Engine'],
] as const

const isDockerFlag = (key: string): boolean => dockerFlags.some(([own]) => own === key)

/** @throws usage error for one that is not of this provider, or is given twice */
const dockerSettings = (flags: Flags, set: readonly (readonly [string, unknown])[]): [string, unknown][] =>
  dockerFlags.flatMap(([key, usage]): [string, unknown][] => {
    const value = flags[key]
    if (value === undefined) return []
    const name = usage.split(' ')[0]
    if (flags['provider'] !== 'docker') throw usageError(`${name} is a setting of the provider docker`)
    if (value === '') throw usageError(`${name} must not be empty`)
    if (set.some(([one]) => one === key)) throw usageError(`${name} and --set ${key} say the same: give one`)
    return [[key, value]]
  })

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
  for (const [, usage, description] of dockerFlags) command.option(usage, description)
  withJson(withConnection(command))
  examples(
    command,
    'backend add lab --provider process --set graceSeconds=10 --default',
    'backend add boxes --provider docker --image debian:stable-slim',
    'backend add far --provider docker --host ssh://ci@build.example --image debian:stable-slim',
  )
  act(command, async (flags, name = '') => {
    if (!flags['provider']) throw usageError('say which: --provider PROVIDER')
    // `--host` of other commands is where the coordinator listens.
    const { client, settings } = await cli.session(Object.fromEntries(Object.entries(flags).filter(([key]) => !isDockerFlag(key))))
    const given = Object.entries((flags['set'] ?? {}) as Record<string, string>).map(([key, value]) => [key, jsonOrText(value)] as const)
    const set = [...given, ...dockerSettings(flags, given)]
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
