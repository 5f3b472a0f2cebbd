/** What a command gets to work with, and the shape of a command's file. */
import type { Command } from 'commander'
import type { Settings } from '../../model/config.ts'
import type { Io } from './io.ts'
import type { Session, SettingFlags } from './session.ts'
import { renderFields, renderTable, type Column } from './table.ts'
import { printable } from './text.ts'

/** Every option of a command line as commander gathers them. */
export type Flags = Record<string, unknown> & { json?: boolean; url?: string; data?: string; config?: string }

export interface Cli {
  io: Io
  settings(flags: Flags): Promise<Settings>
  /** Settings, and the coordinator that they name. */
  session(flags: Flags): Promise<Session>
  /** One object: as JSON, or however it is shown to people. */
  show<T>(flags: Flags, value: T, forPeople: (value: T) => string): void
  /** A list: one JSON array, or a table; an empty one says so on stderr. */
  list<Row>(flags: Flags, rows: readonly Row[], columns: readonly Column<Row>[], empty: string): void
  fields(fields: Parameters<typeof renderFields>[0]): string
  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string
  /** A line for people, on stderr. */
  say(text: string): void
  warn(text: string): void
  /** The exit code of a command that went through; 0 unless set. */
  exitCode: number
}

/** `define` gives the command its options, help and action. */
export interface CommandModule {
  define: (command: Command, cli: Cli) => void
}

const settingFlags = (flags: Flags): SettingFlags => {
  const text = (name: string): string | undefined => (typeof flags[name] === 'string' ? flags[name] : undefined)
  return {
    config: text('config'),
    data: text('data'),
    url: text('url'),
    host: text('host'),
    port: text('port'),
    logLevel: text('logLevel'),
    project: text('project'),
  }
}

export const createCli = (io: Io): Cli => {
  const cli: Cli = {
    io,
    exitCode: 0,
    // Loaded when first needed: the help of a command needs neither files nor network.
    settings: async (flags) => await (await import('./session.ts')).loadSettings(settingFlags(flags), io),
    session: async (flags) => {
      const { connect, loadSettings } = await import('./session.ts')
      return connect(await loadSettings(settingFlags(flags), io))
    },
    show: (flags, value, forPeople) => io.out(flags.json ? `${JSON.stringify(value, null, 2)}\n` : forPeople(value)),
    list: (flags, rows, columns, empty) => {
      if (flags.json) io.out(`${JSON.stringify(rows, null, 2)}\n`)
      else if (rows.length === 0) cli.say(empty)
      else io.out(renderTable(columns, rows, io.colours))
    },
    fields: (fields) => renderFields(fields, io.colours),
    table: (columns, rows) => renderTable(columns, rows, io.colours),
    say: (text) => io.err(`leasehold: ${printable(text)}\n`),
    warn: (text) => io.err(`leasehold: warning: ${printable(text)}\n`),
  }
  return cli
}

/** The action of a command: its arguments, then its flags, those before its name included. */
export const act = (command: Command, work: (flags: Flags, ...operands: string[]) => Promise<void> | void): Command =>
  command.action(async (...received: unknown[]) => {
    const operands = received
      .slice(0, -2)
      .flatMap((one) => (one === undefined ? [] : Array.isArray(one) ? (one as string[]) : [one as string]))
    await work(command.optsWithGlobals<Flags>(), ...operands)
  })
