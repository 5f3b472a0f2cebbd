/** `leasehold removal show|acknowledge-absence|close`: what a person says of a removal that stands still. */
import type { Command } from 'commander'
import type { RemovalView } from '../model/wire-removals.ts'
import { act, type Cli } from './support/cli.ts'
import { usageError } from './support/errors.ts'
import { segment } from './support/http.ts'
import { examples, withConnection, withJson } from './support/options.ts'

export const removalText = (one: RemovalView): string =>
  [
    `removal ${one.id} of ${one.name} is ${one.state}${one.stuck ? ' (stuck)' : ''}, ordered ${one.openedAt} (${one.cause})`,
    ...one.members.map((member) => `  ${member.state.padEnd(8)}${member.kind} ${member.nativeID} in ${member.location}`),
    ...(one.reason === null ? [] : [`reason       ${one.reason}`]),
    ...(one.closedBy === null ? [] : [`closed       by ${one.closedBy}: ${one.closedReason ?? ''}`]),
    `next step    ${one.nextStep}`,
    `fingerprint  ${one.fingerprint}`,
  ]
    .join('\n')
    .concat('\n')

/** What nobody looks for any more, by name: it may cost for as long as it is there. */
const leftBehind = (one: RemovalView): string =>
  one.left.length === 0 && one.leftSeenAt !== null
    ? 'its provider shows nothing of it any more'
    : one.left.length === 0
      ? `what it leaves behind nobody knows by name: look in ${one.location} of ${one.scope} for what carries ref ${one.ref}`
      : `it leaves behind${one.leftSeenAt === null ? ', as far as anybody knows' : ''}: ${one.left.join(', ')}`

const needed = (value: unknown, option: string): string => {
  if (typeof value !== 'string' || value.trim() === '') throw usageError(`say it with ${option}`)
  return value
}

export const define = (command: Command, cli: Cli): void => {
  const show = command
    .command('show')
    .summary('show a removal')
    .description('Shows a removal with its members and its next step.')
    .argument('<id>')
  withJson(withConnection(show))
  examples(show, 'removal show rm_0190f3c2a1b47d4c8e5f60718293a4b5')
  act(show, async (flags, id = '') => {
    const { client } = await cli.session(flags)
    const { removal } = await client.get<{ removal: RemovalView }>(`/v1/removals/${segment(id)}`)
    cli.show(flags, removal, () => removalText(removal))
  })

  const acknowledge = command
    .command('acknowledge-absence')
    .summary('answer for what is gone, so that the removal goes on')
    .description('Says that you know why a member of the group is gone. Each absence is read once more before anything else is touched.')
    .argument('<id>')
    .option('--fingerprint <hash>', 'of the removal as you looked at it (needed), or its first 12 digits')
    .option('--reason <text>', 'why it is gone (needed); kept in the audit')
  withJson(withConnection(acknowledge))
  examples(
    acknowledge,
    'removal acknowledge-absence rm_0190f3c2a1b47d4c8e5f60718293a4b5 --fingerprint 3f9a1c0b7d22 --reason "replaced by hand"',
  )
  act(acknowledge, async (flags, id = '') => {
    const body = { fingerprint: needed(flags['fingerprint'], '--fingerprint HASH'), reason: needed(flags['reason'], '--reason TEXT') }
    const { client } = await cli.session(flags)
    const answer = await client.call<{ removal: RemovalView }>('POST', `/v1/removals/${segment(id)}/acknowledge-absence`, { body })
    const { removal } = answer.body
    cli.show(flags, removal, () => `the absence is acknowledged, and removal ${removal.id} goes on\n`)
  })

  const close = command
    .command('close')
    .summary('end a removal that was given up or waits for a person')
    .description(
      'Ends a removal without proof. A sweep takes back what it left only where that is a whole group again; the rest stays for a person to end by hand, and "sweep", "status" and "admin lease-audit" name it for as long as it is there. Its provider is asked first what that is, for 15 s at most.',
    )
    .argument('<id>')
    .option('--reason <text>', 'why (needed); kept in the audit')
    .option('--fingerprint <hash>', 'of the removal as you looked at it; without it, as it is')
  withJson(withConnection(close))
  examples(close, 'removal close rm_0190f3c2a1b47d4c8e5f60718293a4b5 --reason "the account is closed"')
  act(close, async (flags, id = '') => {
    const fingerprint = flags['fingerprint']
    const body = { reason: needed(flags['reason'], '--reason TEXT'), ...(typeof fingerprint === 'string' ? { fingerprint } : {}) }
    const { client } = await cli.session(flags)
    const { removal } = (await client.call<{ removal: RemovalView }>('POST', `/v1/removals/${segment(id)}/close`, { body })).body
    cli.show(flags, removal, () => `removal ${removal.id} is closed; nothing is proved by that\n${leftBehind(removal)}\n`)
  })
}
