/** `leasehold stop ID`, also `release`: ends a lease, removes its box, also a kept one, and waits for the proof (leases R30, R39). */
import type { Command } from 'commander'
import type { LeaseView } from '../model/wire.ts'
import { isReady } from '../model/claim.ts'
import { keepClaims, type ClaimKeeper } from './support/claim-keeper.ts'
import { act, type Cli, type Flags } from './support/cli.ts'
import { CliError, exitCodes } from './support/errors.ts'
import { ApiError, type Client } from './support/http.ts'
import { identifierOf } from './support/lease-actions.ts'
import { describeLease } from './support/lease-text.ts'
import { getLease, leasePath, waitForRemoval } from './support/leases.ts'
import { examples, positiveDuration, withConnection, withJson } from './support/options.ts'
import { proofMs } from './support/release-after-run.ts'

export const define = (command: Command, cli: Cli): void => {
  command
    .description(
      'Ends a lease and removes its box, also of a kept box (made with --keep, or retained by a release), and waits for the proof. ' +
        '"leasehold lease release" leaves a kept box.',
    )
    .argument('[id|slug]')
    .option('--id <id|slug>', 'the lease, in place of the argument')
    .option('--no-wait', "don't wait until the box is proved gone")
    .option('--wait-timeout <duration>', 'wait at most so long (default 30s)', positiveDuration)
  withJson(withConnection(command))
  examples(command, 'stop brave-otter', 'stop lh_0123456789ab --wait-timeout 5m', 'release brave-otter --no-wait')
  command.addHelpText(
    'after',
    "\nExit codes: 1 its removal was closed, or it is another installation's, 4 no such lease, 5 not proved gone in time, 7 the removal failed (it is tried again) or is held.",
  )
  act(command, (flags, argument) => stop(cli, flags, identifierOf(argument, flags['id'])))
}

const stop = async (cli: Cli, flags: Flags, identifier: string): Promise<void> => {
  const session = await cli.session(flags)
  const { client } = session
  const keeper = keepClaims(cli, session)
  let id: string
  let released: LeaseView
  try {
    id = (await getLease(client, identifier, keeper.store)).id
    released = (await client.call<{ lease: LeaseView }>('POST', `${leasePath(id)}/release`, { body: { delete: true } })).body.lease
  } catch (error) {
    if (error instanceof ApiError && error.status === 404 && (await cancelUnborn(cli, client, keeper, identifier))) return
    throw error
  }
  const limitMs = flags['wait'] === false ? 0 : ((flags['waitTimeout'] as number | undefined) ?? proofMs)
  const { lease, final, held, over } = await waitForRemoval(client, released, limitMs)
  cli.show(flags, lease, () =>
    final ? `${lease.id} (${lease.slug}) is ${lease.state}, and its box is proved gone\n` : describeLease(cli, lease),
  )
  if (final) {
    await keeper.settle(lease)
    return
  }
  if (lease.cleanup.state === 'closed' && over) throw new CliError(closedText(lease), exitCodes.failure)
  if (flags['wait'] === false) return
  const { removalID, retryAt, state } = lease.cleanup
  // Without a next try nobody but a person makes it go on.
  const look =
    state === 'failed' && retryAt === null
      ? `It waits for a person, and is not tried again by itself: "leasehold removal show ${removalID ?? ''}" says what to do`
      : `It is tried again; look with "leasehold status ${lease.id}"`
  if (lease.cleanup.state === 'failed')
    throw new CliError(`the removal of ${lease.id} failed: ${lease.cleanup.error ?? 'no reason given'}. ${look}`, exitCodes.removalFailed)
  if (held)
    throw new CliError(
      `${lease.id} is ${lease.state}, its box is held back by ${lease.cleanup.heldBy ?? 'someone'}: it is removed once that is lifted ("leasehold hold list", "leasehold freeze --list", "leasehold installation")`,
      exitCodes.removalFailed,
    )
  throw new CliError(`${lease.id} is ${lease.state}, its removal is not proved within ${limitMs / 1000} s. ${look}`, exitCodes.waitTimeout)
}

/** Nothing tries it any more, and no order changes that: who ended it, and what is left to a person. */
const closedText = ({ id, cleanup }: LeaseView): string => {
  const { closedBy, mayBeLeft, removalID, leftTo } = cleanup
  if (leftTo !== null)
    return `${id} is left to installation ${leftTo} since this database was forked: end it at the coordinator of that one`
  const by = `the removal of ${id} was closed by ${closedBy ?? 'somebody'}, and nothing tries it any more`
  if (mayBeLeft === null) return `${by}; nothing of it is left, as far as its provider showed: "leasehold removal show ${removalID ?? ''}"`
  const left = mayBeLeft.length === 0 ? `what it left nobody knows by name` : `end by hand what is still there of ${mayBeLeft.join(', ')}`
  return `${by}; ${left}. "leasehold admin lease-audit" looks at it now, "leasehold removal show ${removalID ?? ''}" says why it was closed`
}

/** A claim whose create never arrived: cancelled by its key, so that it can't arrive later, and dropped. */
const cancelUnborn = async (cli: Cli, client: Client, keeper: ClaimKeeper, identifier: string): Promise<boolean> => {
  const claim = keeper.store.list().claims.find(({ leaseID, slug }) => leaseID === identifier || slug === identifier)
  if (!claim || claim.createAttemptID === null || isReady(claim) || claim.coordinator !== client.url) return false
  const body = { createAttemptID: claim.createAttemptID }
  const answer = (await client.call<{ lease?: LeaseView }>('POST', `${leasePath(claim.leaseID)}/cancel-create`, { body })).body
  if (answer.lease) return false
  await keeper.drop(claim)
  cli.say(`lease ${claim.leaseID} was never made; its create is cancelled and its claim dropped`)
  return true
}
