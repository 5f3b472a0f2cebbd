/** `leasehold prune`: applications that are declared in files. */
import { resolve } from 'node:path'
import type { Command } from 'commander'
import type { FileReport, ReleaseSummary } from '../prune/validate.ts'
import { act, type Cli } from './support/cli.ts'
import { exitCodes, usageError } from './support/errors.ts'
import { examples, withJson } from './support/options.ts'
import { printable } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  defineValidate(command, cli)
}

const andAlso = (file: string, before: string[] | undefined): string[] => [...(before ?? []), file]

const defineValidate = (command: Command, cli: Cli): void => {
  const validate = command
    .command('validate')
    .summary('check files of applications, offline')
    .description(
      'Checks app sets and release files with all that these name, and asks nobody: no Swarm, no network. Every fault has its line, column and remedy; exit code 2 if there is any.',
    )
    .requiredOption('--file <file>', 'an app set or a release file; may be given several times', andAlso)
  withJson(validate)
  examples(validate, 'prune validate --file applications.yaml', 'prune validate --file deploy/releases.yaml --json')
  act(validate, async (flags) => {
    const files = flags['file'] as string[]
    if (files.includes('')) throw usageError('--file is empty: name a file')
    // Loaded here: help needs neither YAML nor the schema.
    const { validateFile } = await import('../prune/validate.ts')
    const { faultLine } = await import('../model/prune/fault.ts')
    const reports: FileReport[] = []
    for (const file of files) reports.push(await validateFile(resolve(cli.io.folder, file), cli.io.folder))
    const ok = reports.every((one) => one.ok)
    if (!ok) cli.exitCode = exitCodes.usage
    cli.show(flags, { version: 1, ok, files: reports }, () => reports.map((one) => reportText(one, faultLine)).join(''))
  })
}

const reportText = (report: FileReport, faultLine: (fault: FileReport['faults'][number]) => string): string => {
  if (!report.ok) {
    const count = report.faults.length === 1 ? '1 fault' : `${report.faults.length} faults`
    return `${[...report.faults.map(faultLine), `${report.file}: ${count}`].map(printable).join('\n')}\n`
  }
  const what =
    report.kind === 'app-set'
      ? `app set of ${report.applications.length}${report.applications.length > 0 ? `: ${report.applications.join(', ')}` : ''}`
      : `releases: ${report.releases.length === 0 ? 'none' : report.releases.map(summaryText).join('; ')}`
  return `${printable(`${report.file}: ok, ${what}`)}\n`
}

const summaryText = (one: ReleaseSummary): string => {
  const counts = (['services', 'networks', 'configs', 'secrets', 'volumes'] as const)
    .filter((kind) => one[kind] > 0)
    .map((kind) => `${one[kind]} ${one[kind] === 1 ? kind.slice(0, -1) : kind}`)
  return `${one.name} (${counts.join(', ')})`
}
