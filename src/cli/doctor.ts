/** `leasehold doctor`: what works and what does not, with a remedy each; local checks first, then the coordinator's. */
import { accessSync, constants, statSync } from 'node:fs'
import type { Command } from 'commander'
import { counted } from '../lib/counted.ts'
import type { Settings } from '../model/config.ts'
import { unknownVariables, unknownVariableText } from '../model/environment.ts'
import type { DoctorCheck } from '../model/wire.ts'
import { openClaims } from '../store/claims.ts'
import { act, type Cli } from './support/cli.ts'
import { CliError, exitCodes, messageOf } from './support/errors.ts'
import { ApiError } from './support/http.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { providerNames } from './support/provider-names.ts'
import { connect, readAdminToken } from './support/session.ts'
import { stateStyle } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  withJson(withConnection(command))
  examples(command, 'doctor', 'doctor --json')
  act(command, async (flags) => {
    const settings = await cli.settings(flags)
    const checks = [...localChecks(settings), environmentCheck(cli), ...(await coordinatorChecks(settings))]
    if (checks.some(({ level }) => level === 'error')) cli.exitCode = exitCodes.failure
    cli.list(
      flags,
      checks,
      [
        { title: 'LEVEL', cell: (one) => one.level, style: (one) => stateStyle(one.level) },
        { title: 'CHECK', cell: (one) => one.name },
        { title: 'MESSAGE', cell: (one) => (one.remedy === null ? one.message : `${one.message} → ${one.remedy}`) },
      ],
      'nothing to check',
    )
  })
}

const good = (name: string, message: string): DoctorCheck => ({ name, level: 'ok', message, remedy: null })

const localChecks = (settings: Settings): DoctorCheck[] => [
  dataCheck(settings.data.value),
  tokenCheck(settings.data.value),
  claimsCheck(settings.data.value),
]

const environmentCheck = (cli: Cli): DoctorCheck => {
  const name = 'local environment'
  const unknown = unknownVariables(cli.io.environment, providerNames)
  if (unknown.length === 0) return good(name, 'every LEASEHOLD_ variable of this shell is read by something')
  return { name, level: 'warning', message: unknown.map(unknownVariableText).join('; '), remedy: 'correct it, or take it out' }
}

const dataCheck = (folder: string): DoctorCheck => {
  const name = 'local data folder'
  const stat = statSync(folder, { throwIfNoEntry: false })
  if (!stat) return good(name, `${folder} is not there yet; it is made when it is needed`)
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    return {
      name,
      level: 'error',
      message: `${folder} can't be read and written`,
      remedy: 'give it to your user, or set LEASEHOLD_DATA to another folder',
    }
  }
  if ((stat.mode & 0o077) === 0) return good(name, folder)
  return { name, level: 'warning', message: `others may look into ${folder}`, remedy: `chmod 700 ${folder}` }
}

const tokenCheck = (data: string): DoctorCheck => {
  const name = 'local admin token'
  const admin = readAdminToken(data)
  if (admin.kind === 'none') return good(name, `${admin.file} is not there: no coordinator was started with this data folder`)
  if (admin.kind === 'unreadable')
    return { name, level: 'error', message: admin.why, remedy: 'run as the user who started the coordinator, or set LEASEHOLD_TOKEN' }
  if ((statSync(admin.file).mode & 0o077) === 0) return good(name, admin.file)
  return { name, level: 'error', message: `others may read ${admin.file}`, remedy: `chmod 600 ${admin.file}, and replace the token` }
}

const claimsCheck = (data: string): DoctorCheck => {
  const { claims, problems, problemsOmitted } = openClaims(data).list()
  const bad = problems.length + problemsOmitted
  if (bad === 0) return good('local claims', counted(claims.length, 'local claim'))
  return {
    name: 'local claims',
    level: 'warning',
    message: `${counted(bad, 'claim file')} can't be used`,
    remedy: 'see "leasehold claims list"',
  }
}

const coordinatorChecks = async (settings: Settings): Promise<DoctorCheck[]> => {
  const name = 'coordinator'
  try {
    const { client } = connect(settings)
    const { checks } = await client.get<{ checks: DoctorCheck[] }>('/v1/doctor', { deadlineMs: 60_000 })
    return [good(name, client.url), ...checks]
  } catch (error) {
    return [{ name, level: 'error', ...troubleOf(error) }]
  }
}

const troubleOf = (error: unknown): { message: string; remedy: string } => {
  if (!(error instanceof CliError)) return { message: messageOf(error), remedy: 'see "leasehold config"' }
  if (error instanceof ApiError && error.status === 401)
    return {
      message: error.what,
      remedy: 'the token may have expired or been revoked: set LEASEHOLD_TOKEN to a valid one; see "leasehold config"',
    }
  if (error instanceof ApiError && error.status === 403)
    return { message: error.what, remedy: 'the token may not ask this: use one with the role operator or admin' }
  if (error instanceof ApiError) return { message: error.what, remedy: "see the coordinator's log" }
  return { message: error.what, remedy: error.remedy ?? 'see "leasehold config"' }
}
