/** The findings that only a person makes better, under a sweep: whatever its outcome says, they stand. */
import { counted } from '../../lib/counted.ts'
import { needsPerson } from '../../model/codes.ts'
import type { FindingView, SweepView } from '../../model/wire.ts'
import type { Cli } from './cli.ts'
import type { Client } from './http.ts'
import { relative } from './text.ts'

const most = 50

/** Of the backends that were swept, last seen first. */
export const findingsForPerson = async (client: Client, sweeps: readonly SweepView[]): Promise<FindingView[]> => {
  const found: FindingView[] = []
  for (const { project, backend } of sweeps) {
    const query = { state: 'open', code: [...needsPerson].join(','), project, backend, limit: most }
    found.push(...(await client.get<{ findings: FindingView[] }>('/v1/findings', { query })).findings)
  }
  return found
}

export const personText = (cli: Cli, findings: readonly FindingView[]): string => {
  if (findings.length === 0) return ''
  const now = cli.io.now()
  const table = cli.table(
    [
      { title: 'NEEDS A PERSON', cell: (one: FindingView) => one.code },
      { title: 'TARGET', cell: (one: FindingView) => one.target.id },
      { title: 'FIRST SEEN', cell: (one: FindingView) => relative(one.firstSeenAt, now) },
      { title: 'FINDING', cell: (one: FindingView) => one.id },
      { title: 'MESSAGE', cell: (one: FindingView) => one.message },
    ],
    findings,
  )
  return `\n${table}${counted(findings.length, 'finding stands', 'findings stand')} until a person decides; "leasehold explain" says why\n`
}
