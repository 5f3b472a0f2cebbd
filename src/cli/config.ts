/** `leasehold config`: every setting, its value and where it comes from. Secrets are `***`. */
import { Option, type Command } from 'commander'
import { environmentOf, settingNames, shownValue, type SettingName } from '../model/config.ts'
import { act, type Cli } from './support/cli.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { findCoordinator, findToken } from './support/session.ts'

interface Row {
  name: SettingName
  value: string | number | null
  origin: string
  /** The environment variable that sets it. */
  environment: string
}

export const define = (command: Command, cli: Cli): void => {
  command
    .option('--host <address>', 'address that serve listens on')
    .option('--port <port>', 'port that serve listens on')
    .addOption(new Option('--log-level <level>', 'least level that serve logs'))
    .option('--project <project>', 'project of new leases')
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
      if (name === 'url' && value === null && coordinator) return { ...row, value: coordinator.url, origin: `file ${coordinator.origin}` }
      if (name === 'token' && value === null && token?.token) return { ...row, value: '***', origin: token.origin }
      return row
    })
    cli.list(
      flags,
      rows,
      [
        { title: 'SETTING', cell: (row) => row.name },
        { title: 'VALUE', cell: (row) => row.value },
        { title: 'FROM', cell: (row) => row.origin },
      ],
      '',
    )
  })
}
