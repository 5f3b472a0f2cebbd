/** `leasehold events`: the feed, oldest first; `--follow` stays and prints what comes. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { EventView } from '../model/wire.ts'
import { act, type Cli, type Flags } from './support/cli.ts'
import { CliError, exitCodes, messageOf } from './support/errors.ts'
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
    .option('--limit <n>', 'at most so many: without --after the newest, with it the next', wholeNumber(1))
  withJson(withConnection(command))
  examples(command, 'events --target brave-otter', 'events --follow', 'events --limit 20', 'events --after 1200 --json')
  act(command, async (flags) => {
    const { client } = await cli.session(flags)
    const limit = (flags['limit'] as number | undefined) ?? Number.POSITIVE_INFINITY
    if (flags['follow']) return await follow(cli, client, flags, limit)
    const newest = flags['after'] === undefined && limit < Number.POSITIVE_INFINITY
    const all = newest ? await readNewest(client, flags, limit) : await readAll(client, flags, limit)
    if (all.length === 0) await requireKnown(client, flags)
    if (!flags.json && all.length > 0) return cli.io.out(all.map((event) => line(cli, event)).join(''))
    cli.list(flags, all, [], 'no events')
  })
}

/** A target of which no event ever told is taken for a mistake; one that is only quiet after `--after` is not. */
const requireKnown = async (client: Client, flags: Flags): Promise<void> => {
  const target = flags['target']
  if (typeof target !== 'string') return
  const after = (flags['after'] as number | undefined) ?? 0
  if (after > 0 && (await readPage(client, flags, 0, 1, 0)).events.length > 0) return
  throw new CliError(
    `no event that this token may see is about ${JSON.stringify(target)}: nothing of that id or name is known`,
    exitCodes.notFound,
  )
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

/** Page by page backwards, and then in the order of time. */
const readNewest = async (client: Client, flags: Flags, limit: number): Promise<EventView[]> => {
  const all: EventView[] = []
  for (let before: number | 'newest' = 'newest'; all.length < limit;) {
    const most = Math.min(limit - all.length, pageSize)
    const query: Record<string, string | number> = { before, limit: most, target: flags['target'] as string }
    const page: { events: EventView[] } = await client.get('/v1/events', { query })
    const [first] = page.events
    if (!first) break
    all.unshift(...page.events)
    before = first.seq
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

/** As long as the longest code, and as a number that a feed reaches. */
const codeWidth = 21
const seqWidth = 6

/** Columns of a fixed width, so that what `--follow` prints later stands below what it printed before. */
const line = (cli: Cli, event: EventView): string => {
  const style = event.level === 'info' ? null : stateStyle(event.level)
  const what = printable(`${event.level.padEnd('warning'.length)}  ${event.code.padEnd(codeWidth)}`)
  const code = style === null ? what : paint(cli.io.colours, style, what)
  const seq = String(event.seq).padStart(seqWidth)
  const targets = event.targets.map(({ type, id, name }) => `${type}:${name === '' || name === id ? id : `${name}(${id})`}`).join(' ')
  return `${seq}  ${paint(cli.io.colours, 'dim', printable(event.at))}  ${code}  ${printable(event.message)}  ${paint(cli.io.colours, 'dim', printable(targets))}\n`
}
