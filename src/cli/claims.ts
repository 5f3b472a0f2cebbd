/** `leasehold claims list`: the local claim files; takes no locks, asks nobody (leases R115). */
import type { Command } from 'commander'
import { openClaims } from '../store/claims.ts'
import { act, type Cli } from './support/cli.ts'
import { exitCodes } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { relative } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  const list = command
    .command('list')
    .summary('list local claims')
    .description('Lists the claims of this machine, and what is wrong with any of their files; exit code 2 if anything is.')
  withJson(withConnection(list))
  examples(list, 'claims list', 'claims list --json')
  act(list, async (flags) => {
    const settings = await cli.settings(flags)
    const { claims, problems, problemsOmitted } = openClaims(settings.data.value).list()
    if (problems.length > 0) cli.exitCode = exitCodes.usage
    if (flags.json) {
      const more = problemsOmitted > 0 ? { problemsOmitted } : {}
      cli.io.out(`${JSON.stringify({ version: 1, source: 'local-claims', claims, problems, ...more }, null, 2)}\n`)
      return
    }
    const now = cli.io.now()
    cli.list(
      flags,
      claims,
      [
        { title: 'LEASE', cell: (one) => one.leaseID },
        { title: 'SLUG', cell: (one) => one.slug },
        { title: 'STATE', cell: (one) => one.labels['state'], style: (one) => (one.labels['state'] === 'ready' ? 'green' : 'yellow') },
        { title: 'PROVIDER', cell: (one) => one.provider },
        { title: 'REPOSITORY', cell: (one) => one.repoRoot },
        { title: 'CLAIMED', cell: (one) => relative(one.claimedAt, now) },
        { title: 'LAST USED', cell: (one) => relative(one.lastUsedAt, now) },
        { title: 'COORDINATOR', cell: (one) => one.coordinator },
      ],
      'no claims',
    )
    for (const { file, problem } of problems) cli.warn(`${file} ${problem}`)
    if (problemsOmitted > 0) cli.warn(`and ${problemsOmitted} more files that can't be used`)
  })
}
