/** `leasehold serve`: the coordinator in the foreground. Loads it, and with it all that the CLI otherwise goes without. */
import { Option, type Command } from 'commander'
import { refusedVariables, unknownVariables, unknownVariableText } from '../model/environment.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { examples, withConnection } from './support/options.ts'
import { providerNames } from './support/provider-names.ts'
import { readRateSettings } from './support/rate-config.ts'
import { readSweepSettings } from './support/sweep-config.ts'

export const define = (command: Command, cli: Cli): void => {
  command
    .option('--host <address>', 'address to listen on (default 127.0.0.1)')
    .option('--port <port>', 'port to listen on (default 7400; 0: any free one)')
    .addOption(new Option('--log-level <level>', 'least level that is logged (default info)'))
    .option('--allow-zero-grace', 'allow sweeps in delete mode with a grace of 0')
  withConnection(command)
  examples(command, 'serve', 'serve --port 7500 --data ./data')
  act(command, async (flags) => {
    const settings = await cli.settings(flags)
    const unknown = unknownVariables(cli.io.environment, providerNames)
    const refused = refusedVariables(unknown)
    if (refused !== null) throw usageError(refused)
    for (const one of unknown) cli.warn(unknownVariableText(one))
    // Before anything is opened or locked: a wrong setting stops the start (orphans R74).
    const sweeps = readSweepSettings(cli.io.environment, providerNames, flags['allowZeroGrace'] === true)
    const rates = readRateSettings(cli.io.environment, providerNames)
    const { serve } = await import('./serve.ts')
    await serve({ settings, sweeps, rates })
  })
}
