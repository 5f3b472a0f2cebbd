/** `leasehold config`: every setting, its value and where it comes from. Secrets are `***`. */
import { Option, type Command } from 'commander'
import { unknownVariables, unknownVariableText } from '../model/environment.ts'
import { environmentOf, settingNames, shownValue } from '../model/config.ts'
import { act, type Cli } from './support/cli.ts'
import { messageOf } from './support/errors.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { providerNames } from './support/provider-names.ts'
import { findCoordinator, findToken } from './support/session.ts'
import { whoseSweeps } from './support/sweep-whose.ts'
import { rateRows, readRateSettings } from './support/rate-config.ts'
import { readSweepSettings, sweepRows } from './support/sweep-config.ts'

interface Row {
  name: string
  value: string | number | boolean | null
  origin: string
  /** The environment variable that sets it. */
  environment: string
}

const problemOf = (read: () => unknown): string | null => {
  try {
    read()
    return null
  } catch (error) {
    return messageOf(error)
  }
}

export const define = (command: Command, cli: Cli): void => {
  command
    .option('--host <address>', 'address that serve listens on')
    .option('--port <port>', 'port that serve listens on')
    .addOption(new Option('--log-level <level>', 'least level that serve logs'))
    .option('--project <project>', 'project of new leases')
    .option('--allow-zero-grace', 'as for serve: a grace of 0 in delete mode is meant')
  withJson(withConnection(command))
  examples(command, 'config', 'config --json')
  act(command, async (flags) => {
    const settings = await cli.settings(flags)
    const coordinator = findCoordinator(settings)
    const token = coordinator ? findToken(settings, coordinator) : null
    const rows = settingNames.map((name): Row => {
      const { value, origin } = settings[name]
      const row = { name, value: shownValue(name, value), origin, environment: environmentOf(name) }
      // What the CLI would use where nothing is set: the coordinator of this machine and its first token.
      if (name === 'url' && value === null && coordinator) return { ...row, value: coordinator.url, origin: coordinator.origin }
      if (name === 'token' && value === null && token?.token) return { ...row, value: '***', origin: token.origin }
      return row
    })
    const sweeps = readSweepSettings(cli.io.environment, providerNames, true)
    for (const one of unknownVariables(cli.io.environment, providerNames)) cli.warn(unknownVariableText(one))
    if (flags['json'] !== true && coordinator !== null)
      cli.warn(await whoseSweeps({ url: coordinator.url, origin: coordinator.origin, token: token?.token ?? null }, sweeps))
    const refused = flags['allowZeroGrace'] === true ? null : problemOf(() => readSweepSettings(cli.io.environment, providerNames, false))
    if (refused !== null) cli.warn(`serve refuses to start: ${refused}`)
    cli.list(
      flags,
      [...rows, ...sweepRows(sweeps), ...rateRows(readRateSettings(cli.io.environment, providerNames))],
      [
        { title: 'SETTING', cell: (row) => row.name },
        { title: 'VALUE', cell: (row) => (typeof row.value === 'boolean' ? (row.value ? 'on' : 'off') : row.value) },
        { title: 'FROM', cell: (row) => row.origin },
      ],
      '',
    )
  })
}
