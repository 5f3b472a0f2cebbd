/** `leasehold token create|list|revoke`. A token's secret is shown once, when it is made. */
import type { Command } from 'commander'
import { roles, type TokenView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { segment } from './support/http.ts'
import { examples, wholeSeconds, withConnection, withJson } from './support/options.ts'
import { relative } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  defineCreate(command.command('create'), cli)
  const list = command.command('list').summary('list tokens').description('Lists tokens, never their secrets.')
  withJson(withConnection(list))
  examples(list, 'token list')
  act(list, async (flags) => {
    const { client } = await cli.session(flags)
    const { tokens } = await client.get<{ tokens: TokenView[] }>('/v1/tokens')
    const now = cli.io.now()
    cli.list(
      flags,
      tokens,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'NAME', cell: (one) => one.name },
        { title: 'ROLE', cell: (one) => one.role },
        { title: 'PROJECT', cell: (one) => one.project ?? 'all' },
        { title: 'CREATED', cell: (one) => relative(one.createdAt, now) },
        { title: 'EXPIRES', cell: (one) => (one.expiresAt === null ? 'never' : relative(one.expiresAt, now)) },
        { title: 'REVOKED', cell: (one) => relative(one.revokedAt, now) },
      ],
      'no tokens',
    )
  })
  const revoke = command.command('revoke').summary('revoke a token').description('Revokes a token at once and for good.').argument('<id>')
  withJson(withConnection(revoke))
  examples(revoke, 'token revoke tk_0190f3c2a1b47d4c')
  act(revoke, async (flags, id = '') => {
    const { client } = await cli.session(flags)
    const { token } = (await client.call<{ token: TokenView }>('DELETE', `/v1/tokens/${segment(id)}`)).body
    cli.show(flags, token, () => `token ${token.name} (${token.id}) is revoked\n`)
  })
}

const defineCreate = (command: Command, cli: Cli): void => {
  command
    .summary('make a token')
    .description('Makes a token and prints its secret, once, on stdout.')
    .argument('<name>')
    .option('--role <role>', roles.join(', '), 'user')
    .option('--project <project>', 'good for this project only')
    .option('--expires <duration>', 'good for so long (default: until it is revoked)', wholeSeconds)
  withJson(withConnection(command))
  examples(command, 'token create ci --project default --expires 30d', 'token create ops --role operator --json')
  act(command, async (flags, name = '') => {
    if (!roles.some((role) => role === flags['role'])) throw usageError(`--role must be one of ${roles.join(', ')}`)
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    const body = {
      name,
      role: flags['role'],
      ...(project === undefined ? {} : { project }),
      ...(flags['expires'] === undefined ? {} : { expiresInSeconds: flags['expires'] }),
    }
    const made = await client.call<{ token: TokenView; secret: string; warnings?: string[] }>('POST', '/v1/tokens', { body })
    const { token, secret, warnings } = made.body
    for (const warning of warnings ?? []) cli.warn(warning)
    cli.show(flags, { ...token, secret }, () => `${secret}\n`)
    if (!flags.json)
      cli.say(`token ${token.name} (${token.id}), role ${token.role}, ${token.project ?? 'every project'}; its secret is not shown again`)
  })
}
