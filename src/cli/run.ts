/** `leasehold run -- CMD`: a command in a box of its own, which is taken back when the command ends. */
import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import type { AccessAnswer, LeaseView } from '../model/wire.ts'
import { beat, keepBeating } from './support/beat.ts'
import { keepClaims, type ClaimKeeper } from './support/claim-keeper.ts'
import { act, type Cli, type Flags } from './support/cli.ts'
import { createLease } from './support/create-lease.ts'
import { CliError, exitCodes, messageOf, usageError } from './support/errors.ts'
import { ApiError, NoAnswer } from './support/http.ts'
import { catchInterrupts, Interrupted, signalStatus, type Interrupts } from './support/interrupts.ts'
import { explainEnd } from './support/lease-end.ts'
import { hasEnded } from './support/lease-text.ts'
import { getLease, leasePath } from './support/leases.ts'
import { examples, withConnection } from './support/options.ts'
import { releaseAfterRun } from './support/release-after-run.ts'
import { idleSeconds, leaseRequest, withLeaseOptions } from './support/request.ts'
import type { BoxDoor } from './support/io.ts'
import type { Session } from './support/session.ts'
import { superviseCommand } from './support/supervise.ts'

export const define = (command: Command, cli: Cli): void => {
  command
    .usage('[options] -- <command> [arguments...]')
    .argument('[command...]', 'the command and its arguments, behind --')
    .passThroughOptions()
    .option('--id <id|slug>', 'run in this lease instead of a new one; it is not released at the end')
    .option('--reclaim', "move another repository's claim on it here")
    .option('--keep', 'leave the box when the command ends; "leasehold stop" removes it, "leasehold lease release" leaves it')
    .option('--no-wait', "don't wait for proof of the removal (up to 30s)")
    .option('-q, --quiet', 'no word of ours but warnings and errors')
  withConnection(withLeaseOptions(command))
  examples(
    command,
    'run -- make test',
    'run --ttl 2h --idle 10m -- sh -c "make && make check"',
    'run --id brave-otter -- make bench',
    'run --fleet ci -- make test',
  )
  command.addHelpText(
    'after',
    "\nExits with the command's status: 126 not executable, 127 not found, 128+n ended by signal n. 125 is a failure of run\nitself, 2 wrong usage, bad input or a claim of another repository.",
  )
  act(command, async (flags, ...words) => {
    cli.exitCode = await run(cli, flags, words)
  })
}

const run = async (cli: Cli, flags: Flags, words: string[]): Promise<number> => {
  if (words.length === 0) throw usageError('no command: leasehold run [options] -- COMMAND')
  if (words[0] === '') throw usageError("the command's name is empty: leasehold run [options] -- COMMAND")
  refuseContradictions(flags)
  const session = await cli.session(flags).catch(ownFailure)
  const keeper = keepClaims(cli, session)
  const interrupts = catchInterrupts()
  try {
    const reused = typeof flags['id'] === 'string'
    const lease = await (reused ? reuse(cli, session, keeper, flags) : create(cli, session, keeper, flags, interrupts)).catch(ownFailure)
    let status: number
    try {
      status = await runInside(cli, session, lease, words, interrupts, flags)
    } catch (error) {
      if (!reused && !flags['keep']) await releaseAfterRun({ cli, session, keeper, lease, interrupts, wait: false, quiet: true })
      return ownFailure(error)
    }
    if (reused) say(cli, flags, `lease ${lease.id} (${lease.slug}) goes on; end it with "leasehold stop ${lease.slug}"`)
    else if (flags['keep']) say(cli, flags, keptText(lease))
    else await releaseAfterRun({ cli, session, keeper, lease, interrupts, wait: flags['wait'] !== false, quiet: flags['quiet'] === true })
    return status
  } catch (error) {
    if (error instanceof Interrupted) return signalStatus(error.signal)
    throw error
  } finally {
    interrupts.close()
  }
}

const say = (cli: Cli, flags: Flags, text: string): void => {
  if (!flags['quiet']) cli.say(text)
}

const keptText = (lease: LeaseView): string =>
  `kept ${lease.id}: use it with "leasehold run --id ${lease.slug} -- COMMAND", end it with "leasehold stop ${lease.slug}"; ` +
  `without a heartbeat it ends at ${lease.expiresAt}`

/** 125 for what is not the command's fault nor bad input's, so that it can't be taken for the command's own status. */
const ownFailure = (error: unknown): never => {
  if (error instanceof Interrupted) throw error
  if (error instanceof CliError) throw error.exitCode === exitCodes.usage ? error : new CliError(error.message, exitCodes.runFailed)
  throw new CliError(messageOf(error), exitCodes.runFailed)
}

const onlyForNew = ['ttl', 'slug', 'provider', 'backend', 'fleet', 'project', 'label'] as const

const refuseContradictions = (flags: Flags): void => {
  if (flags['id'] === undefined) {
    if (flags['reclaim']) throw usageError('--reclaim moves the claim of an existing lease: it needs --id')
    return
  }
  if (flags['id'] === '') throw usageError('--id must not be empty')
  const wrong = onlyForNew.find((name) => flags[name] !== undefined)
  if (wrong) throw usageError(`--${wrong} is for a new lease, --id names one that is there`)
}

const create = async (cli: Cli, session: Session, keeper: ClaimKeeper, flags: Flags, interrupts: Interrupts): Promise<LeaseView> => {
  const request = leaseRequest(flags, session.settings)
  const { lease } = await createLease({ cli, client: session.client, keeper, request, fixedID: null, signal: interrupts.abortOnNext() })
  say(cli, flags, `lease ${lease.id} (${lease.slug})`)
  return lease
}

const reuse = async (cli: Cli, { client }: Session, keeper: ClaimKeeper, flags: Flags): Promise<LeaseView> => {
  const lease = await getLease(client, flags['id'] as string, keeper.store)
  if (hasEnded(lease)) {
    await keeper.settle(lease)
    throw new CliError(`lease ${lease.id} (${lease.slug}) has ended: it is ${lease.state}`)
  }
  if (lease.state === 'provisioning')
    throw new CliError(`lease ${lease.id} is not ready yet; wait with "leasehold status ${lease.id} --wait"`)
  await keeper.use(lease, flags['reclaim'] ? 'reclaim' : 'use')
  const idle = idleSeconds(flags)
  const touched = await beat(client, lease.id, idle === undefined ? {} : { idleTimeoutSeconds: idle })
  say(cli, flags, `lease ${touched.id} (${touched.slug}), in use again`)
  return touched
}

const runInside = async (
  cli: Cli,
  { client }: Session,
  lease: LeaseView,
  words: string[],
  interrupts: Interrupts,
  flags: Flags,
): Promise<number> => {
  if (lease.accessWarning !== null) cli.warn(lease.accessWarning)
  const early = interrupts.abortOnNext()
  const answer = await readAccess(client, lease, early)
  const { access } = answer
  if (access.kind === 'none')
    throw new CliError(`no command can run in lease ${lease.id} (${lease.slug}): ${access.why}`, exitCodes.runFailed)
  const door = await cli.io.door(access)
  early.throwIfAborted()
  const child = enter(cli, door, answer, lease, words, flags['id'] !== undefined)
  let told: Promise<void> | null = null
  const tell = async (command: 'ended' | 'running', otherwise: string | null): Promise<void> => {
    const text = (await explainEnd(client, lease, command, Date.now())) ?? otherwise
    if (text !== null) cli.warn(text)
  }
  const beats = keepBeating(client, lease, (why) => {
    told ??= tell('running', `lease ${lease.id} has ended under the command: ${why}`)
  })
  try {
    const { status, unasked } = await superviseCommand(child, access, door, interrupts, (text) => say(cli, flags, text))
    beats.stop()
    // A command may catch what ends its box and exit with any status but, as a rule, 0.
    if (unasked && status !== 0) told ??= tell('ended', null)
    await told
    return status
  } catch (error) {
    if (flags['keep']) cli.warn(`lease ${lease.id} is kept; end it with "leasehold stop ${lease.id}"`)
    throw error
  } finally {
    beats.stop()
  }
}

const enter = (
  cli: Cli,
  door: BoxDoor,
  { access, holder }: AccessAnswer,
  lease: LeaseView,
  words: string[],
  reused: boolean,
): ChildProcess => {
  const cwd = cli.io.folder
  if (!existsSync(cwd)) throw new CliError(`the current folder ${cwd} is not there any more: change to another one`, exitCodes.runFailed)
  try {
    const own = holder ? { LEASEHOLD_LEASE_TOKEN: holder.leaseToken } : {}
    const env = { ...cli.io.environment, ...own }
    return door.spawnInBox(access, words, { cwd, env, stdio: 'inherit', ...(holder ? { lease: holder.leaseID } : {}) })
  } catch (error) {
    // A lease of this command's own is released by it.
    const advice = reused ? `; "leasehold stop ${lease.slug}" ends the lease` : ''
    throw new CliError(`lease ${lease.id} (${lease.slug}) can't be entered: ${messageOf(error)}${advice}`, exitCodes.runFailed)
  }
}

/** Tries again over a restart of the coordinator: the lease is there, and giving up would waste it. */
const readAccess = async (client: Session['client'], lease: LeaseView, signal: AbortSignal): Promise<AccessAnswer> => {
  for (let tries = 0; ; tries += 1) {
    try {
      return await client.get<AccessAnswer>(`${leasePath(lease.id)}/access`, { signal })
    } catch (error) {
      const mayWork = error instanceof NoAnswer || (error instanceof ApiError && error.status >= 500)
      if (!mayWork || tries === 40) throw error
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }
}
