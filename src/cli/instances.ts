/** `leasehold instances [ID]`: what provisions, and each try to create it. */
import type { Command } from 'commander'
import type { InstanceView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { segment } from './support/http.ts'
import { examples, wholeNumber, withConnection, withJson } from './support/options.ts'
import { emptyText, reportQuery, sayUnknown, unknownColumn, withReportFilters } from './support/report-options.ts'
import { relative, stateStyle } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  command
    .argument('[id|ref]')
    .option('--state <state>', 'only this state: pending, provisioning, idle, busy, terminating, terminated')
    .option('--limit <n>', 'at most so many (default 100)', wholeNumber(1, 500))
  withReportFilters(command, 'made')
  withJson(withConnection(command))
  examples(
    command,
    'instances',
    'instances --state busy --json',
    'instances --owner ann --older-than 1d',
    'instances in_0190f3c2a1b47d4c8e5f60718293a4b5',
  )
  act(command, async (flags, identifier) => {
    const { project: _, ...rest } = flags
    const { client } = await cli.session(rest)
    if (identifier !== undefined) {
      const { instance } = await client.get<{ instance: InstanceView }>(`/v1/instances/${segment(identifier)}`)
      cli.show(flags, instance, () => describe(cli, instance))
      return
    }
    const filter = { ...reportQuery(flags), state: flags['state'] as string | undefined }
    const read = async (query: Record<string, string | number | undefined>): Promise<InstanceView[]> =>
      (await client.get<{ instances: InstanceView[] }>('/v1/instances', { query })).instances
    const instances = await read({ ...filter, limit: flags['limit'] as number | undefined })
    const now = cli.io.now()
    cli.list(
      flags,
      instances,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'REF', cell: (one) => one.ref },
        { title: 'NAME', cell: (one) => one.name },
        {
          title: 'STATE',
          cell: (one) => (hasGivenUp(one) ? `${one.state} (given up)` : one.state),
          style: (one) => stateStyle(hasGivenUp(one) ? 'gave-up' : one.state),
        },
        { title: 'PROJECT', cell: (one) => one.project },
        { title: 'PROVIDER', cell: (one) => one.provider },
        { title: 'FLEET', cell: (one) => one.fleet },
        { title: 'LEASE', cell: (one) => one.leaseID },
        { title: 'RESOURCE', cell: (one) => one.cloudID },
        { title: 'CREATED', cell: (one) => relative(one.createdAt, now) },
        { title: 'CHANGED', cell: (one) => relative(one.changedAt, now) },
        ...unknownColumn(instances),
      ],
      await emptyText(flags, instances, filter, { none: 'no instances', one: 'instance' }, (limit) => read({ limit })),
    )
    sayUnknown(cli, instances)
  })
}

/** It ended, nobody tries to take it back any more, and it is not proved gone. */
const hasGivenUp = (instance: InstanceView): boolean => instance.gaveUpAt !== null && instance.state === 'terminating'

const describe = (cli: Cli, instance: InstanceView): string => {
  const head = cli.fields([
    ['id', instance.id],
    ['ref', instance.ref],
    ['name', instance.name],
    ['state', instance.state],
    ['project', instance.project],
    ['provider', `${instance.provider} (backend ${instance.backend})`],
    ['scope', instance.scope],
    ['location', instance.location],
    ['fleet', instance.fleet],
    ['lease', instance.leaseID],
    ['resource', instance.cloudID],
    ['identity', instance.cloudImmutableID],
    ['created', instance.createdAt],
    ['changed', instance.changedAt],
    ['terminated', instance.terminatedAt],
    ['given up', instance.gaveUpAt],
    ['removal error', instance.removalError],
  ])
  if (instance.attempts.length === 0) return head
  return `${head}\n${cli.table(
    [
      { title: 'ATTEMPT', cell: (one) => one.number, align: 'right' },
      { title: 'ID', cell: (one) => one.id },
      { title: 'OUTCOME', cell: (one) => one.outcome },
      { title: 'OPENED', cell: (one) => one.openedAt },
      { title: 'ENDED', cell: (one) => one.endedAt },
      { title: 'ERROR', cell: (one) => one.error },
    ],
    instance.attempts,
  )}`
}
