/** The filters of reports, in every command that lists: what is shown, never what is deleted. */
import type { Command } from 'commander'
import { counted } from '../../lib/counted.ts'
import { parseLabel } from '../../model/report-filter.ts'
import type { Cli, Flags } from './cli.ts'
import { usageError } from './errors.ts'
import { wholeSeconds } from './options.ts'
import type { Column } from './table.ts'

type Row = { unknown?: string[] }

/** Unless the command has them already: `--project`, `--owner`. */
export const withReportFilters = (command: Command, age: string): Command => {
  const known = new Set(command.options.map((option) => option.attributeName()))
  const add = (name: string, flags: string, text: string): void => void (known.has(name) || command.option(flags, text))
  add('project', '--project <project>', 'only of this project')
  add('owner', '--owner <owner>', 'only of this owner')
  add('kind', '--kind <kind>', 'only about this kind of resource')
  add('label', '--label <key=value>', 'only with this label')
  command.option('--older-than <duration>', `only ${age} at least so long ago, such as 2h`, wholeSeconds)
  return command
}

/** The query of the API. */
export const reportQuery = (flags: Flags): Record<string, string | number | undefined> => {
  const label = flags['label'] as string | undefined
  if (label !== undefined && parseLabel(label) === null) throw usageError(`--label must be key=value, not ${JSON.stringify(label)}`)
  return {
    project: flags['project'] as string | undefined,
    owner: flags['owner'] as string | undefined,
    kind: flags['kind'] as string | undefined,
    label,
    olderThanSeconds: flags['olderThan'] as number | undefined,
  }
}

/** A column of what could not be answered, where there is anything. */
export const unknownColumn = <R extends Row>(rows: readonly R[]): Column<R>[] =>
  rows.some((row) => row.unknown !== undefined)
    ? [{ title: 'UNKNOWN', cell: (row) => row.unknown?.join(', ') ?? '', style: () => 'yellow' }]
    : []

/** Unknown is not no: how many are shown because nobody can say. */
export const sayUnknown = (cli: Cli, rows: readonly Row[]): void => {
  const unknown = rows.filter((row) => row.unknown !== undefined)
  if (unknown.length === 0) return
  const what = [...new Set(unknown.flatMap((row) => row.unknown ?? []))].toSorted().join(' or ')
  cli.say(
    `${unknown.length} of ${counted(rows.length, 'row')} ${unknown.length === 1 ? 'is' : 'are'} shown although the ${what} is not known`,
  )
}

/** As many as a list gives at once. */
const mostCounted = 500

/**
 * What an empty list says. Nothing that fits a filter is not nothing at all: where one was given, what there is without it is counted, and an empty list never
 * sounds as if all were well.
 * @param filter what narrowed the list; undefined values are none
 * @param all the list without it, `limit` at most
 */
export const emptyText = async (
  flags: Flags,
  rows: readonly unknown[],
  filter: Readonly<Record<string, unknown>>,
  { none, one, many }: { none: string; one: string; many?: string },
  all: (limit: number) => Promise<readonly unknown[]>,
): Promise<string> => {
  if (flags.json || rows.length > 0 || Object.values(filter).every((value) => value === undefined)) return none
  const there = (await all(mostCounted)).length
  if (there === 0) return none
  return `none of ${there === mostCounted ? `${there} or more ${many ?? `${one}s`}` : counted(there, one, many)} ${there === 1 ? 'fits' : 'fit'} the filter`
}
