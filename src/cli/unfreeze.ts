/** `leasehold unfreeze`: lets removals go on. */
import type { Command } from 'commander'
import type { FreezeView } from '../model/wire.ts'
import { act, type Cli } from './support/cli.ts'
import { segment } from './support/http.ts'
import { examples, withConnection, withJson } from './support/options.ts'

export const define = (command: Command, cli: Cli): void => {
  command.option('--scope <scope>', 'only this scope (default: the freeze of every one)').option('--reason <text>', 'why')
  withJson(withConnection(command))
  examples(command, 'unfreeze --reason "outage over"', 'unfreeze --scope machine:0f3a')
  act(command, async (flags) => {
    const { client } = await cli.session(flags)
    const scope = (flags['scope'] as string | undefined) ?? '*'
    const options = flags['reason'] === undefined ? {} : { body: { reason: flags['reason'] } }
    const answer = (await client.call<{ freeze?: FreezeView }>('DELETE', `/v1/freezes/${segment(scope)}`, options)).body
    cli.show(flags, answer.freeze ?? answer, () => `${scope === '*' ? 'the freeze of every scope' : `the freeze of ${scope}`} is lifted\n`)
  })
}
