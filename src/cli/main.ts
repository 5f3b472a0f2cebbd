/**
 * The command line. Only names and summaries are here; a command's own file is loaded when it is called or its help is
 * asked for, so that `--help` answers at once.
 */
import { Command, CommanderError } from 'commander'
import { nearest } from '../lib/nearest.ts'
import { createCli, type Cli, type CommandModule } from './support/cli.ts'
import { CliError, exitCodes, messageOf, usageError } from './support/errors.ts'
import { processIo, type Io } from './support/io.ts'
import { withConnection } from './support/options.ts'
import { printable } from './support/text.ts'
import { packageVersion } from './support/version.ts'

interface Entry {
  name: string
  alias?: string
  summary: string
  group: string
  load: () => Promise<CommandModule>
}

const leases = 'Leases:'
const watching = 'What is there and what happened:'
const operating = 'Operating:'

const entries: readonly Entry[] = [
  { name: 'run', summary: 'run a command in a fresh box and take the box back', group: leases, load: () => import('./run.ts') },
  { name: 'warmup', summary: 'create a lease for later use', group: leases, load: () => import('./warmup.ts') },
  { name: 'list', summary: 'list leases', group: leases, load: () => import('./list.ts') },
  { name: 'status', summary: 'show one lease, or the coordinator itself', group: leases, load: () => import('./status.ts') },
  { name: 'heartbeat', alias: 'touch', summary: 'say that a lease is still in use', group: leases, load: () => import('./heartbeat.ts') },
  {
    name: 'stop',
    alias: 'release',
    summary: 'end a lease and remove its box, also a kept one',
    group: leases,
    load: () => import('./stop.ts'),
  },
  { name: 'lease', summary: 'create, list, get, heartbeat, release', group: leases, load: () => import('./lease.ts') },
  { name: 'claims', summary: 'list the local claims of this machine', group: leases, load: () => import('./claims.ts') },
  { name: 'instances', summary: 'list instances, or show one', group: watching, load: () => import('./instances.ts') },
  { name: 'events', summary: 'list events, or follow them', group: watching, load: () => import('./events.ts') },
  { name: 'findings', summary: 'list what needs time or a person', group: watching, load: () => import('./findings.ts') },
  {
    name: 'explain',
    summary: 'why something is as it is, and what would change that',
    group: watching,
    load: () => import('./explain.ts'),
  },
  { name: 'receipt', summary: 'the evidence that a deletion stood on', group: watching, load: () => import('./receipt.ts') },
  { name: 'orphans', summary: 'list what sweeps found', group: watching, load: () => import('./orphans.ts') },
  { name: 'sweeps', summary: 'list the certificates of sweeps, or show one', group: watching, load: () => import('./sweeps.ts') },
  { name: 'sweep', summary: 'sweep now, or try it dry', group: operating, load: () => import('./sweep.ts') },
  { name: 'plans', summary: 'list plans of removals, or show one with its proofs', group: watching, load: () => import('./plans.ts') },
  { name: 'approve', summary: 'begin exactly one plan', group: operating, load: () => import('./approve.ts') },
  {
    name: 'removals',
    summary: 'list what is being taken back, what is stuck first',
    group: watching,
    load: () => import('./removals.ts'),
  },
  {
    name: 'removal',
    summary: 'show a removal, answer for what is gone, or close it',
    group: operating,
    load: () => import('./removal.ts'),
  },
  { name: 'prune', summary: 'check applications that are declared in files', group: operating, load: () => import('./prune.ts') },
  { name: 'simulate', summary: 'play with the cloud of the provider "simulated"', group: operating, load: () => import('./simulate.ts') },
  { name: 'serve', summary: 'run the coordinator', group: operating, load: () => import('./serve-command.ts') },
  { name: 'doctor', summary: 'check this machine, the coordinator and its providers', group: operating, load: () => import('./doctor.ts') },
  { name: 'config', summary: 'show every setting and where it comes from', group: operating, load: () => import('./config.ts') },
  { name: 'hold', summary: 'add, list or remove holds: "not this"', group: operating, load: () => import('./hold.ts') },
  { name: 'freeze', summary: 'stop every removal, or those of one scope', group: operating, load: () => import('./freeze.ts') },
  { name: 'unfreeze', summary: 'let removals go on', group: operating, load: () => import('./unfreeze.ts') },
  {
    name: 'installation',
    summary: 'show which database this is; adopt or fork a copied or restored one',
    group: operating,
    load: () => import('./installation.ts'),
  },
  { name: 'project', summary: 'create, list or delete projects', group: operating, load: () => import('./project.ts') },
  { name: 'backend', summary: 'add, list or remove backends', group: operating, load: () => import('./backend.ts') },
  { name: 'fleet', summary: 'keep boxes ready: create, list, scale or delete fleets', group: operating, load: () => import('./fleet.ts') },
  { name: 'token', summary: 'create, list or revoke tokens', group: operating, load: () => import('./token.ts') },
  { name: 'audit', summary: 'list audit records, or verify their chain', group: operating, load: () => import('./audit.ts') },
  { name: 'admin', summary: "lease audit, and others' leases", group: operating, load: () => import('./admin.ts') },
]

const isHelp = (word: string): boolean => word === '--help' || word === '-h'

/** Help on a command that is not there would be its parent's, as if all were well: without the request for help it is refused. */
const withoutHelpOfNothing = (program: Command, argv: readonly string[]): readonly string[] => {
  let command = program
  for (let at = 0; at < argv.length && command.commands.length > 0; at += 1) {
    const word = argv[at] as string
    if (takesValue.has(word)) at += 1
    else if (!word.startsWith('-')) {
      const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
      if (!next) return argv.filter((one) => !isHelp(one))
      command = next
    }
  }
  return argv
}

/** A command that does something by itself takes no words: one that looks like a command of its own is misspelt, and commander would only count it. */
const refuseMisspelt = (program: Command, argv: readonly string[]): void => {
  let command = program
  for (let at = 0; at < argv.length && command.commands.length > 0; at += 1) {
    const word = argv[at] as string
    if (command === program && takesValue.has(word)) at += 1
    else if (word.startsWith('-')) {
      if (command !== program) return
    } else {
      const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word))
      if (!next) {
        if (command === program || command.registeredArguments.length > 0) return
        const near = nearest(
          word,
          command.commands.map((one) => one.name()),
        )
        throw usageError(`unknown command '${word}'${near === null ? '' : `; did you mean ${near}?`}`)
      }
      command = next
    }
  }
}

const takesValue = new Set(['--url', '--data', '--config'])

/** The word that names the command: the first that is neither an option before it nor such an option's value. */
const calledName = (argv: readonly string[]): string | undefined => {
  for (let at = 0; at < argv.length; at += 1) {
    const word = argv[at] as string
    if (takesValue.has(word)) at += 1
    else if (!word.startsWith('-')) return word
  }
  return undefined
}

const build = async (argv: readonly string[], cli: Cli): Promise<Command> => {
  const program = new Command('leasehold')
    .description('Keeps account of every resource that automation creates and takes back what nobody holds any more.')
    .usage('[options] <command>')
    .exitOverride()
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .configureOutput({
      writeOut: cli.io.out,
      writeErr: cli.io.err,
      outputError: (text, write) => write(text.replace(/^error: /, 'leasehold: ')),
    })
    .configureHelp({ helpWidth: 110, subcommandTerm: (command) => `${command.name()}${command.alias() ? `|${command.alias()}` : ''}` })
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpCommand(false)
  withConnection(program)
  const called = calledName(argv)
  for (const entry of entries) {
    program.commandsGroup(entry.group)
    const command = program.command(entry.name).summary(entry.summary).description(sentence(entry.summary))
    if (entry.alias) command.alias(entry.alias)
    if (called !== undefined && (called === entry.name || called === entry.alias)) (await entry.load()).define(command, cli)
  }
  return program.addHelpText('after', '\nleasehold <command> --help explains a command. In a hurry: leasehold run -- make test\n')
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`

/**
 * Runs one command line (without node and the script) and answers the exit code: 0, 2 wrong usage or bad input, 4 not found or
 * not yours, 5 wait timed out, 7 removal failed, 1 anything else; `run` answers its command's own.
 */
export const runCli = async (words: readonly string[], io: Io = processIo()): Promise<number> => {
  const cli = createCli(io)
  const argv = words[0] === 'help' ? [...words.slice(1), '--help'] : words
  try {
    const program = await build(argv, cli)
    refuseMisspelt(program, argv)
    await program.parseAsync(withoutHelpOfNothing(program, argv), { from: 'user' })
    return cli.exitCode
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage
    if (!(error instanceof CliError)) {
      const fromSystem = typeof (error as { code?: unknown }).code === 'string'
      // A fault of ours needs its place; one of the system (no space, no permission) is told by its message.
      io.err(
        `leasehold: ${printable(messageOf(error))}\n${fromSystem || !(error instanceof Error) ? '' : `${error.stack?.split('\n').slice(1, 4).join('\n')}\n`}`,
      )
      return exitCodes.failure
    }
    io.err(`leasehold: ${printable(error.message)}\n`)
    return error.exitCode
  }
}
