/**
 * `leasehold simulate`: by hand in the simulated cloud, as somebody with the account's console would be. It works on the account's file and needs no
 * coordinator.
 */
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Option, type Command } from 'commander'
import { formatDuration } from '../lib/duration.ts'
import type { Cloud, Fault, Resource } from '../providers/simulated/cloud.ts'
import type * as simulatedCloud from '../providers/simulated/cloud.ts'
import { act, type Cli, type Flags } from './support/cli.ts'
import { CliError, exitCodes, messageOf, usageError } from './support/errors.ts'
import { examples, keyValue, positiveDuration, wholeNumber, withConnection, withJson } from './support/options.ts'
import { relative, type Style } from './support/text.ts'

/** What is printed of a resource with --json. */
interface ResourceView extends Omit<Resource, 'createdAt' | 'version'> {
  createdAt: string
}
interface FaultView {
  id: number
  op: string
  effect: string
  /** null: until cleared. */
  remaining: number | null
  struck: number
  forMs: number | null
  page: number | null
  location: string | null
  kind: string | null
}

type Module = typeof simulatedCloud

const resourceView = (one: Resource): ResourceView => ({
  id: one.id,
  kind: one.kind,
  location: one.location,
  name: one.name,
  state: one.state,
  tags: one.tags,
  clientToken: one.clientToken,
  createdAt: new Date(one.createdAt).toISOString(),
  attachedTo: one.attachedTo,
})

const faultView = ({ operation, lengthMs, ...one }: Fault): FaultView => ({
  id: one.id,
  op: operation,
  effect: one.effect,
  remaining: one.remaining,
  struck: one.struck,
  forMs: lengthMs,
  page: one.page,
  location: one.location,
  kind: one.kind,
})

const withPath = (command: Command): Command =>
  withConnection(withJson(command.addOption(new Option('--path <file>', "the account's file (default: simulated.db in the data folder)"))))

/** Opens the account, works on it and closes it. Null: there is none, and `make` does not ask for one. */
const withCloud = async <T>(
  cli: Cli,
  flags: Flags,
  make: 'make' | 'look',
  work: (cloud: Cloud, module: Module) => T,
): Promise<T | null> => {
  const module = await import('../providers/simulated/cloud.ts')
  const path = await pathOf(cli, flags)
  if (!existsSync(path)) {
    if (typeof flags['path'] === 'string' && (make === 'look' || !existsSync(dirname(path))))
      throw usageError(`there is no such account file: ${path}${make === 'look' ? '' : ', nor its folder'}`)
    if (make === 'look') return null
    if (typeof flags['path'] === 'string') cli.say(`made a new account in ${path}`)
  }
  let cloud: Cloud
  try {
    cloud = module.openCloud(path)
  } catch (error) {
    throw new CliError(`the simulated account could not be opened: ${messageOf(error)}`)
  }
  try {
    return work(cloud, module)
  } catch (error) {
    if (error instanceof module.NotFoundError) throw new CliError(error.message, exitCodes.notFound)
    throw error
  } finally {
    cloud.close()
  }
}

const pathOf = async (cli: Cli, flags: Flags): Promise<string> => {
  const given = flags['path']
  if (given === '') throw usageError('--path must not be empty')
  return typeof given === 'string' ? resolve(cli.io.folder, given) : join((await cli.settings(flags)).data.value, 'simulated.db')
}

const noAccount = async (cli: Cli, flags: Flags): Promise<never> => {
  throw new CliError(
    `there is no simulated account in ${await pathOf(cli, flags)}; "leasehold simulate launch" makes one`,
    exitCodes.notFound,
  )
}

const text = (flags: Flags, name: string): string => {
  const value = flags[name]
  if (typeof value !== 'string' || value === '') throw usageError(`say the ${name}: --${name} ${name.toUpperCase()}`)
  return value
}

/** What is there, and the provider's own: a backend may have others, which are used once something is made in them. */
const placeOf = (flags: Flags, cloud: Cloud, defaults: readonly string[]): string => {
  const location = text(flags, 'location')
  const known = [...new Set([...defaults, ...cloud.locations()])].toSorted()
  if (!known.includes(location))
    throw usageError(`--location: there is no location ${JSON.stringify(location)}; there is ${known.join(', ')}`)
  return location
}

const choice = <T extends string>(flag: string, value: unknown, values: readonly T[]): T => {
  const known = values.find((one) => one === value)
  if (known === undefined) throw usageError(`--${flag} must be one of ${values.join(', ')}`)
  return known
}

const stateStyle = ({ state }: ResourceView): Style | null => {
  if (state === 'running' || state === 'attached' || state === 'available') return 'green'
  return state === 'terminated' || state === 'deleted' ? 'dim' : 'yellow'
}

const tagText = (tags: ResourceView['tags']): string =>
  tags === null
    ? '(unreadable)'
    : Object.entries(tags)
        .map(([key, value]) => `${key}=${value}`)
        .join(' ')

const shown = (cli: Cli, one: ResourceView): string =>
  cli.fields([
    ['id', one.id],
    ['kind', one.kind],
    ['location', one.location],
    ['name', one.name],
    ['state', one.state],
    ['tags', tagText(one.tags)],
    ['client token', one.clientToken],
    ['created', one.createdAt],
    ['attached to', one.attachedTo.join(' ')],
  ])

export const define = (command: Command, cli: Cli): void => {
  command.addHelpText(
    'after',
    `
The provider "simulated" keeps its cloud in a file, and "simulate" changes it behind the coordinator's back. In short:
  $ leasehold backend add sim --provider simulated
  $ leasehold simulate launch --kind machine --location sim-a --name stranger
  $ leasehold simulate fault add --op delete --effect ignore`,
  )
  defineList(command.command('list'), cli)
  defineLaunch(command.command('launch'), cli)
  defineCopy(command.command('copy'), cli)
  defineRemove(command.command('remove'), cli)
  const fault = command.command('fault').summary('make the cloud misbehave').description('Makes the cloud misbehave, and honest again.')
  defineFaultAdd(fault.command('add'), cli)
  defineFaultList(fault.command('list'), cli)
  defineFaultClear(fault.command('clear'), cli)
}

const defineList = (command: Command, cli: Cli): void => {
  withPath(
    command
      .summary('list everything in it')
      .description("Lists everything in the cloud, also what carries no tag, and what the provider's listings don't show yet."),
  )
  examples(command, 'simulate list', 'simulate list --json --path ./cloud.db')
  act(command, async (flags) => {
    const resources = ((await withCloud(cli, flags, 'look', (cloud) => cloud.all())) ?? []).map(resourceView)
    const now = cli.io.now()
    cli.list(
      flags,
      resources,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'KIND', cell: (one) => one.kind },
        { title: 'LOCATION', cell: (one) => one.location },
        { title: 'NAME', cell: (one) => one.name },
        { title: 'STATE', cell: (one) => one.state, style: stateStyle },
        { title: 'CREATED', cell: (one) => relative(one.createdAt, now) },
        { title: 'ATTACHED TO', cell: (one) => one.attachedTo.join(' ') },
        { title: 'REF', cell: (one) => (one.tags === null ? '(unreadable)' : one.tags['leasehold_ref']) },
      ],
      'the simulated cloud is empty',
    )
  })
}

const defineLaunch = (command: Command, cli: Cli): void => {
  command
    .summary('make a resource by hand')
    .description('Makes a resource as somebody else would: nothing fixed at its creation names an attempt of ours, whatever its tags say.')
    .option('--kind <kind>', 'machine, disk, nic or ip')
    .option('--location <location>', 'such as sim-a')
    .option('--name <name>', 'for people; several may have the same')
    .option('--tag <key=value>', 'a tag; may be given several times', keyValue)
    .option('--ref <ref>', 'the same as --tag leasehold_ref=REF')
  withPath(command)
  examples(
    command,
    'simulate launch --kind machine --location sim-a --name stranger',
    'simulate launch --kind disk --location sim-b --name data --tag team=web --tag keep=true',
    'simulate launch --kind machine --location sim-a --name ghost --ref r0123456789a',
  )
  act(command, async (flags) => {
    const [name, ref] = [text(flags, 'name'), flags['ref']]
    const tags = (flags['tag'] ?? {}) as Record<string, string>
    if (ref === '') throw usageError('--ref must not be empty')
    if (typeof ref === 'string' && tags['leasehold_ref'] !== undefined)
      throw usageError('--ref and --tag leasehold_ref say the same: give one')
    const made = await withCloud(cli, flags, 'make', (cloud, { kinds, defaultLocations }) => {
      const kind = choice('kind', flags['kind'], kinds)
      const location = placeOf(flags, cloud, defaultLocations)
      return cloud.launch([{ kind, location, name, tags: typeof ref === 'string' ? { ...tags, leasehold_ref: ref } : tags }]).resources[0]
    })
    if (made) cli.show(flags, resourceView(made), (one) => shown(cli, one))
  })
}

const defineCopy = (command: Command, cli: Cli): void => {
  command
    .summary('copy a resource with its tags')
    .description('Makes the same again under an id of its own. Tags are copied; what was fixed at creation is not, nor attachments.')
    .argument('<id>')
  withPath(command)
  examples(command, 'simulate copy i-00000001')
  act(command, async (flags, id = '') => {
    const made = (await withCloud(cli, flags, 'look', (cloud) => cloud.copy(id))) ?? (await noAccount(cli, flags))
    cli.show(flags, resourceView(made), (one) => shown(cli, one))
  })
}

const defineRemove = (command: Command, cli: Cli): void => {
  command
    .summary('remove a resource by hand')
    .description(
      "Removes a resource at once and behind Leasehold's back. What stands on something that is there can't be removed before it.",
    )
    .argument('<id>')
  withPath(command)
  examples(command, 'simulate remove i-00000001')
  act(command, async (flags, id = '') => {
    const ending = (await withCloud(cli, flags, 'look', (cloud) => cloud.end(id))) ?? (await noAccount(cli, flags))
    if (ending.kind === 'absent') throw new CliError(`there is no resource ${id} in ${await pathOf(cli, flags)}`, exitCodes.notFound)
    if (ending.kind === 'blocked') throw new CliError(`${id} is attached to ${ending.by}: remove that first`)
    cli.show(flags, { id, outcome: ending.kind }, () =>
      ending.kind === 'ended' ? `${id} is removed\n` : `the removal of ${id} is under way\n`,
    )
  })
}

const defineFaultAdd = (command: Command, cli: Cli): void => {
  command
    .summary('make calls fail, hang or lie')
    .description('Makes calls of the provider fail, hang, come late or lie, until it is cleared or has struck often enough.')
    .option('--op <operation>', 'create, list, get, delete or wipe')
    .option(
      '--effect <effect>',
      'error-before, error-after, hang, slow, lag, ignore, denied, not-found, fail-page, empty-page, repeat-page or throttle',
    )
    .option('--count <number>', 'how often it strikes (default: until cleared)', wholeNumber(1))
    .option(
      '--for <duration>',
      'how long one strike lasts: of slow and lag (needed) and hang; of throttle, when to come again',
      positiveDuration,
    )
    .option('--page <number>', 'only this page of a listing', wholeNumber(1))
    .option('--location <location>', 'only in this location')
    .option('--kind <kind>', 'only for this kind: machine, disk, nic or ip')
  withPath(command)
  examples(
    command,
    'simulate fault add --op create --effect error-after --count 1',
    'simulate fault add --op list --effect fail-page --page 2 --kind disk',
    'simulate fault add --op delete --effect slow --for 20s',
  )
  command.addHelpText(
    'after',
    `
  error-before  an error, and nothing was done        denied       the permission is missing
  error-after   it was done, and an error is answered throttle     too many requests
  hang          neither done nor answered             fail-page    a page of a listing fails
  slow          done and answered so much later       empty-page   an empty page before the real one
  lag           listings don't show new things yet    repeat-page  a page comes twice
  ignore        a deletion is accepted and never happens
                                                      not-found    it is answered that nothing is there`,
  )
  act(command, async (flags) => {
    const fault = await withCloud(
      cli,
      flags,
      flags['path'] === undefined ? 'make' : 'look',
      (cloud, { operations, effects, kinds, faultProblem, defaultLocations }) => {
        const spec = {
          operation: choice('op', flags['op'], operations),
          effect: choice('effect', flags['effect'], effects),
          count: (flags['count'] as number | undefined) ?? null,
          lengthMs: (flags['for'] as number | undefined) ?? null,
          page: (flags['page'] as number | undefined) ?? null,
          location: flags['location'] === undefined ? null : placeOf(flags, cloud, defaultLocations),
          kind: flags['kind'] === undefined ? null : choice('kind', flags['kind'], kinds),
        }
        const problem = faultProblem(spec)
        if (problem !== null)
          throw usageError(spec.lengthMs === null && problem.includes('length') ? `${problem}: --for DURATION` : problem)
        return cloud.addFault(spec)
      },
    )
    if (fault) cli.show(flags, faultView(fault), (one) => `fault ${one.id}: ${describe(one)}\n`)
  })
}

const describe = (one: FaultView): string => {
  const where = [one.kind, one.location === null ? null : `in ${one.location}`, one.page === null ? null : `page ${one.page}`]
  const length = one.forMs === null ? null : `for ${formatDuration(one.forMs)}`
  const often = one.remaining === null ? 'until cleared' : one.remaining === 1 ? 'once' : `${one.remaining} times`
  return [one.op, ...where, one.effect, length, often].filter((part) => part !== null).join(' ')
}

const defineFaultList = (command: Command, cli: Cli): void => {
  withPath(command.summary('list faults').description('Lists the faults that still strike.'))
  examples(command, 'simulate fault list')
  act(command, async (flags) => {
    const faults = ((await withCloud(cli, flags, 'look', (cloud) => cloud.faults())) ?? []).map(faultView)
    cli.list(
      flags,
      faults,
      [
        { title: 'ID', cell: (one) => one.id },
        { title: 'OP', cell: (one) => one.op },
        { title: 'EFFECT', cell: (one) => one.effect },
        { title: 'FOR', cell: (one) => (one.forMs === null ? null : formatDuration(one.forMs)) },
        { title: 'KIND', cell: (one) => one.kind },
        { title: 'LOCATION', cell: (one) => one.location },
        { title: 'PAGE', cell: (one) => one.page },
        { title: 'STRUCK', cell: (one) => one.struck, align: 'right' },
        { title: 'LEFT', cell: (one) => one.remaining ?? 'until cleared' },
      ],
      'no faults: the cloud is honest',
    )
  })
}

const defineFaultClear = (command: Command, cli: Cli): void => {
  withPath(command.summary('remove all faults').description('Removes all faults: the cloud is honest again.'))
  examples(command, 'simulate fault clear')
  act(command, async (flags) => {
    const cleared = (await withCloud(cli, flags, 'look', (cloud) => cloud.clearFaults())) ?? 0
    cli.show(flags, { cleared }, () => `${cleared} ${cleared === 1 ? 'fault is' : 'faults are'} cleared\n`)
  })
}
