/** Options that several commands share, and readers of their values. A reader that refuses ends the program with exit 2. */
import { InvalidArgumentError, Option, type Command } from 'commander'
import { parseDuration } from '../../lib/duration.ts'

const refuse = (problem: string): never => {
  throw new InvalidArgumentError(problem)
}

/** Milliseconds, above zero. */
export const positiveDuration = (text: string): number => {
  if (text.trim() === '') return refuse('It is empty: write a number and a unit, such as 90s, 30m or 2h.')
  const result = parseDuration(text)
  if (!result.ok) return refuse(result.problem)
  return result.milliseconds > 0 ? result.milliseconds : refuse('It must be longer than zero.')
}

/** Whole seconds, one at least: what the API counts in. */
export const wholeSeconds = (text: string): number => {
  const milliseconds = positiveDuration(text)
  return milliseconds % 1000 === 0 ? milliseconds / 1000 : refuse('It must be whole seconds.')
}

/** Milliseconds, zero included. */
export const duration = (text: string): number => {
  const result = parseDuration(text)
  if (!result.ok) return refuse(result.problem)
  return result.milliseconds >= 0 ? result.milliseconds : refuse('It must not be negative.')
}

export const wholeNumber =
  (minimum: number, maximum = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
    if (value >= minimum && value <= maximum) return value
    return refuse(
      maximum === Number.MAX_SAFE_INTEGER
        ? `It must be a whole number, at least ${minimum}.`
        : `It must be a whole number from ${minimum} to ${maximum}.`,
    )
  }

/** Collects `key=value` of a repeatable option. */
export const keyValue = (text: string, before: Record<string, string> = {}): Record<string, string> => {
  const at = text.indexOf('=')
  if (at < 1) return refuse('Write it as key=value.')
  if (Object.hasOwn(before, text.slice(0, at))) return refuse(`The key "${text.slice(0, at)}" is given twice.`)
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) }
}

/** The three that every command takes, wherever on its line. */
export const withConnection = (command: Command): Command =>
  command
    .optionsGroup('Coordinator:')
    .addOption(new Option('--url <url>', 'address of the coordinator, or none'))
    .addOption(new Option('--data <folder>', 'data folder'))
    .addOption(new Option('--config <file>', 'configuration file'))

export const withJson = (command: Command): Command => command.option('--json', "print the API's objects as JSON, nothing else")

/** Text behind the options of a help page. */
export const examples = (command: Command, ...lines: string[]): Command =>
  command.addHelpText('after', `\nExamples:\n${lines.map((line) => `  $ leasehold ${line}`).join('\n')}`)

/** Two spellings of one option; the second is not shown. */
export const alsoKnownAs = (command: Command, flags: string, read: (text: string) => unknown): Command =>
  command.addOption(new Option(flags).argParser(read).hideHelp())
