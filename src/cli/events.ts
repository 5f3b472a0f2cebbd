/** `leasehold events`: the feed, oldest first; `--follow` stays and prints what comes. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { EventView } from '../model/wire.ts'
import { act, type Cli, type Flags } from './support/cli.ts'
import { messageOf } from './support/errors.ts'
import { ApiError, NoAnswer, type Client } from './support/http.ts'
import { examples, wholeNumber, withConnection, withJson } from './support/options.ts'
import { paint, printable, stateStyle } from './support/text.ts'

const pageSize = 500
/** The API holds a long poll for at most 50 s. */
const pollSeconds = 25

export const define = (command: Command, cli: Cli): void => {
  command
    .option('-f, --follow', 'stay and print what comes; with --json one object per line')
    .option('--target <id|name>', 'only about this; it may be gone long since')
    .option('--after <seq>', 'only what came after this one', wholeNumber(0))
    .option('--limit <n>', 'at most so many', wholeNumber(1))
  withJson(withConnection(command))
  examples(command, 'events --target brave-otter', 'events --follow', 'events --after 1200 --json')
  act(command, async (flags) => {
    const { client } = await cli.session(flags)
    const limit = (flags['limit'] as number | undefined) ?? Number.POSITIVE_INFINITY
    if (flags['follow']) return await follow(cli, client, flags, limit)
    const all = await readAll(client, flags, limit)
    if (!flags.json && all.length > 0) return cli.io.out(all.map((event) => line(cli, event)).join(''))
    cli.list(flags, all, [], 'no events')
  })
}

interface Page {
  events: EventView[]
  /** Where the next page begins. */
  after: number
}

const readPage = async (client: Client, flags: Flags, after: number, limit: number, waitSeconds: number): Promise<Page> => {
  const query = { after, limit: Math.min(limit, pageSize), target: flags['target'] as string, ...(waitSeconds > 0 ? { waitSeconds } : {}) }
  const { events, next } = await client.get<{ events: EventView[]; next?: number | null }>('/v1/events', {
    query,
    deadlineMs: 30_000 + waitSeconds * 1000,
  })
  return { events, after: next ?? events.at(-1)?.seq ?? after }
}

const readAll = async (client: Client, flags: Flags, limit: number): Promise<EventView[]> => {
  const all: EventView[] = []
  for (let after = (flags['after'] as number | undefined) ?? 0; all.length < limit;) {
    const page = await readPage(client, flags, after, limit - all.length, 0)
    all.push(...page.events)
    // A page without events may still have moved on, past events of other targets.
    if (page.events.length === 0 && page.after <= after) break
    after = page.after
  }
  return all
}

/** Goes on over a restart of the coordinator, from where it was. */
const follow = async (cli: Cli, client: Client, flags: Flags, limit: number): Promise<void> => {
  let after = (flags['after'] as number | undefined) ?? 0
  let left = limit
  let answered = false
  for (let failures = 0; left > 0;) {
    try {
      const page = await readPage(client, flags, after, left, pollSeconds)
      for (const event of page.events) cli.io.out(flags.json ? `${JSON.stringify(event)}\n` : line(cli, event))
      left -= page.events.length
      after = page.after
      if (failures > 0) cli.say('the coordinator answers again')
      failures = 0
      answered = true
    } catch (error) {
      const mayWork = error instanceof NoAnswer || (error instanceof ApiError && error.status >= 500)
      if (!mayWork || !answered) throw error
      if (failures === 0) cli.warn(`${messageOf(error)}; trying on`)
      failures += 1
      await sleep(Math.min(250 * 2 ** failures, 5000))
    }
  }
}

const line = (cli: Cli, event: EventView): string => {
  const style = event.level === 'info' ? null : stateStyle(event.level)
  const code = style === null ? event.code : paint(cli.io.colours, style, event.code)
  const targets = event.targets.map(({ type, id, name }) => `${type}:${name === '' || name === id ? id : `${name}(${id})`}`).join(' ')
  return `${paint(cli.io.colours, 'dim', printable(event.at))}  ${code}  ${printable(event.message)}  ${paint(cli.io.colours, 'dim', printable(targets))}\n`
}
