import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startCoordinator, type FakeCoordinator } from './coordinator.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

let coordinator: FakeCoordinator
let box: Sandbox
beforeEach(async () => {
  coordinator = await startCoordinator()
  box = sandbox(coordinator.url)
})
afterEach(async () => {
  box.remove()
  await coordinator.close()
})

const commands = [
  ['serve'],
  ['run'],
  ['warmup'],
  ['lease', 'create'],
  ['lease', 'list'],
  ['lease', 'get'],
  ['lease', 'heartbeat'],
  ['lease', 'release'],
  ['list'],
  ['status'],
  ['stop'],
  ['release'],
  ['heartbeat'],
  ['touch'],
  ['instances'],
  ['events'],
  ['findings'],
  ['explain'],
  ['receipt'],
  ['audit', 'verify'],
  ['audit', 'list'],
  ['orphans'],
  ['sweeps'],
  ['sweep'],
  ['admin', 'lease-audit'],
  ['admin', 'leases'],
  ['admin', 'release'],
  ['admin', 'delete'],
  ['token', 'create'],
  ['token', 'list'],
  ['token', 'revoke'],
  ['project', 'create'],
  ['project', 'list'],
  ['project', 'delete'],
  ['fleet', 'create'],
  ['fleet', 'list'],
  ['fleet', 'scale'],
  ['fleet', 'delete'],
  ['backend', 'add'],
  ['backend', 'list'],
  ['backend', 'remove'],
  ['config'],
  ['hold', 'add'],
  ['hold', 'list'],
  ['hold', 'remove'],
  ['installation'],
  ['installation', 'adopt'],
  ['installation', 'fork'],
  ['installation', 'rotate-key'],
  ['freeze'],
  ['unfreeze'],
  ['doctor'],
  ['claims', 'list'],
]

describe('every command', () => {
  it.each(commands.map((words) => [words.join(' '), words] as const))('%s has a help page with an example', async (name, words) => {
    const { status, out, err } = await box.run([...words, '--help'])
    expect([status, err]).toEqual([0, ''])
    expect(out).toContain('Examples:\n  $ leasehold ')
    expect(out).toContain('--data <folder>')
    expect(await box.run(['help', ...words])).toEqual({ status, out, err })
    expect(out).toMatch(
      new RegExp(
        `^Usage: leasehold ${name
          .split(' ')[0]
          ?.replace('touch', 'heartbeat')
          .replace(/^release$/, 'stop')}`,
      ),
    )
  })

  it.each(commands.map((words) => [words.join(' '), words] as const))(
    '%s refuses an unknown flag with exit 2 and asks nobody',
    async (_name, words) => {
      const { status, out, err } = await box.run([...words, '--no-such-flag', 'x'])
      expect([status, out]).toEqual([2, ''])
      expect(err).toMatch(/^leasehold: unknown option '--no-such-flag'\n/)
      expect(coordinator.seen).toEqual([])
    },
  )
})

describe('the command line', () => {
  it('lists every command in its help', async () => {
    const { status, out } = await box.run(['--help'])
    expect(status).toBe(0)
    for (const name of new Set(commands.map(([first]) => first))) expect(out).toMatch(new RegExp(`^  (\\w+\\|)?${name}\\b`, 'm'))
  })

  it.each([['stop'], ['release']])('%s says in its help that it removes a kept box too', async (name) => {
    expect((await box.run([name, '--help'])).out.replace(/\s+/g, ' ')).toMatch(/also of a kept box/)
  })
  it.each([['run'], ['warmup']])('%s says in its help which command leaves a kept box', async (name) => {
    expect((await box.run([name, '--help'])).out.replace(/\s+/g, ' ')).toMatch(
      /"leasehold stop".* "?leasehold lease release|lease release" leaves/,
    )
  })

  it('refuses a misspelt command of a command, with the one that is near', async () => {
    expect(await box.run(['installation', 'forkk'])).toEqual({
      status: 2,
      out: '',
      err: "leasehold: unknown command 'forkk'; did you mean fork?\n",
    })
  })

  it('refuses an unknown command with exit 2', async () => {
    expect(await box.run(['lsit'])).toEqual({ status: 2, out: '', err: "leasehold: unknown command 'lsit'\n(Did you mean list?)\n" })
  })

  it('takes the coordinator before and after the name of the command', async () => {
    const environment = { LEASEHOLD_TOKEN: 't' }
    expect((await box.run(['--url', coordinator.url, 'list'], { environment })).status).toBe(0)
    expect((await box.run(['list', '--url', coordinator.url], { environment })).status).toBe(0)
    expect(coordinator.seen).toHaveLength(2)
  })

  it.each([
    [['warmup', '--ttl', '90'], /"90" has no unit/],
    [['warmup', '--ttl', '0s'], /longer than zero/],
    [['warmup', '--idle', '-5m'], /longer than zero/],
    [['warmup', '--idle', 'soon'], /not a duration/],
    [['warmup', '--ttl', '1500ms'], /whole seconds/],
    [['warmup', '--label', 'novalue'], /key=value/],
    [['warmup', '--id', 'mine'], /lh_ and 12 hex digits/],
    [['list', '--limit', '0'], /from 1 to 500/],
    [['list', '--state', 'dead'], /--state must be one of/],
    [['status', '--wait'], /name it/],
    [['stop'], /name the lease/],
    [['stop', 'a', '--id', 'b'], /name one lease/],
    [['status', 'a', '--id', 'b'], /name one lease/],
    [['warmup', '--idle', ''], /is invalid\. It is empty: write a number and a unit/],
    [['warmup', '--label', 'a=b', '--label', 'a=c'], /The key "a" is given twice/],
    [['run', '--', ''], /name is empty/],
    [['frobnicate', '--help'], /unknown command 'frobnicate'/],
    [['help', 'frobnicate'], /unknown command 'frobnicate'/],
    [['lease', 'frobnicate', '--help'], /unknown command 'frobnicate'/],
    [['freeze'], /--reason/],
    [['orphans', '--code', 'moon'], /--code must be one of orphan/],
    [['sweeps', '--limit', '0'], /from 1 to 500/],
    [['explain'], /missing required argument/],
    [['hold', 'add', 'x', '--type', 'moon', '--reason', 'r'], /--type must be one of/],
    [['token', 'create', 'x', '--role', 'king'], /--role must be one of/],
    [['run'], /no command/],
    [['run', '--reclaim', '--', 'true'], /needs --id/],
    [['run', '--id', 'x', '--ttl', '5m', '--', 'true'], /for a new lease/],
  ] as const)('%j is bad input: exit 2, one line, and nobody is asked', async (argv, message) => {
    const { status, out, err } = await box.run([...argv])
    expect([status, out]).toEqual([2, ''])
    expect(err).toMatch(message)
    expect(err.trimEnd().split('\n')).toHaveLength(1)
    expect(coordinator.seen).toEqual([])
  })
})
