/** Commands in a box on an Engine, through the door that the command line uses. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { signalInBox, spawnInBox } from '../../../src/providers/docker/enter.ts'
import type { Access } from '../../../src/model/wire.ts'
import { withDocker } from '../../support/services/docker-suite.ts'
import { until } from '../process/support.ts'
import { type Boxes, openBoxes } from './support.ts'

// An Engine takes its time where others work beside it.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

withDocker('a command in a box on an Engine', () => {
  let boxes: Boxes
  let access: Access
  let container: string
  beforeAll(async () => {
    boxes = await openBoxes()
    const made = await boxes.make({ secretEnvironment: { LEASEHOLD_LEASE_TOKEN: 'of-the-box' } })
    container = made.container
    access = boxes.provider.access(made.resource, boxes.config)
  })
  afterAll(() => boxes.dispose())

  const run = async (
    command: string[],
    options: { input?: string | Buffer; env?: Record<string, string>; lease?: string; door?: Access } = {},
  ) => {
    const child = spawnInBox(options.door ?? access, command, {
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.env ? { env: { PATH: process.env['PATH'] ?? '', ...options.env } } : {}),
      ...(options.lease === undefined ? {} : { lease: options.lease }),
    })
    const said = { out: [] as Buffer[], err: '' }
    child.stdout?.on('data', (chunk: Buffer) => said.out.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => (said.err += chunk.toString()))
    child.stdin?.on('error', () => {})
    child.stdin?.end(options.input ?? '')
    const [status, signal] = (await once(child, 'close')) as [number | null, string | null]
    return { status, signal, out: Buffer.concat(said.out).toString(), err: said.err }
  }

  it('streams both outputs apart, has its input to the end, and exits with its own status', async () => {
    expect(await run(['sh', '-c', 'echo out; echo err >&2; exit 7'])).toEqual({ status: 7, signal: null, out: 'out\n', err: 'err\n' })
    const input = 'x'.repeat(3_000_000)
    expect((await run(['wc', '-c'], { input })).out.trim()).toBe(String(input.length))
    expect((await run(['cat'], { input })).out).toBe(input)
  })

  it('is 127 where it is not there, 126 where it can not be run, and 128 + n where a signal ended it', async () => {
    expect(await run(['no-such-command'])).toMatchObject({ status: 127, err: expect.stringContaining('no-such-command: not found') })
    expect(await run(['/etc/passwd'])).toMatchObject({ status: 126, err: expect.stringContaining('not executable') })
    expect(await run(['/work'])).toMatchObject({ status: 126 })
    expect((await run(['sh', '-c', 'kill -TERM $$'])).status).toBe(143)
    expect((await run(['sh', '-c', 'kill -KILL $$'])).status).toBe(137)
  })

  it('begins in the volume, with the tags and the secrets of the box, and nothing of the environment outside', async () => {
    const { out } = await run(['sh', '-c', 'pwd; echo "$LEASEHOLD_LEASE_TOKEN"; echo "${OUTSIDE:-none}"; echo "$LEASEHOLD_REF"'], {
      env: { OUTSIDE: 'x', LEASEHOLD_LEASE_TOKEN: 'of-the-caller' },
    })
    expect(out).toMatch(/^\/work\nof-the-box\nnone\n[a-z][a-z0-9]{11}\n$/)
  })

  it('of a fleet box has the lease that holds it now', async () => {
    const { out } = await run(['sh', '-c', 'echo "$LEASEHOLD_LEASE_ID $LEASEHOLD_LEASE_TOKEN"'], {
      lease: 'lh_0123456789ab',
      env: { LEASEHOLD_LEASE_TOKEN: 'of-the-holder' },
    })
    expect(out).toBe('lh_0123456789ab of-the-holder\n')
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const)('gets %s, and may answer to it', async (signal) => {
    const child = spawnInBox(access, ['sh', '-c', `trap 'echo got; exit 9' ${signal.slice(3)}; echo ready; while :; do sleep 0.1; done`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let out = ''
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()))
    await until('it runs', () => out.includes('ready'), 60_000)
    expect(signalInBox(access, child, signal)).toBe(true)
    const [status] = (await once(child, 'close')) as [number | null]
    expect([status, out]).toEqual([9, 'ready\ngot\n'])
    expect(signalInBox(access, child, signal)).toBe(false)
  })

  it('has a terminal where the caller has one', async () => {
    const program = `import { spawnInBox } from ${JSON.stringify(new URL('../../../src/providers/docker/enter.ts', import.meta.url).href)}
      const child = spawnInBox(${JSON.stringify(access)}, ['sh', '-c', '[ -t 0 ] && [ -t 1 ] || exit 1; until [ "$(stty size)" = "33 77" ]; do sleep 0.1; done; stty size; exit 5'])
      child.on('exit', (code) => process.exit(code))`
    const words = [process.execPath, '--no-warnings', '--input-type=module', '-e', program]
      .map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
      .join(' ')
    // Not synchronously: what stands between here and the Engine runs in this process.
    const child = spawn('script', ['-qec', `stty rows 33 cols 77; ${words}`, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    const [status] = (await once(child, 'close')) as [number | null]
    expect([status, out.trim()]).toEqual([5, '33 77'])
  })

  it('is 125 with a line where the box is gone, or its Engine', async () => {
    const other = await boxes.make()
    const door = boxes.provider.access(other.resource, boxes.config)
    await boxes.call('DELETE', `/containers/${other.container}?force=1`)
    expect(await run(['true'], { door })).toMatchObject({ status: 125, err: expect.stringContaining('the box is gone') })
    const nowhere = { ...door, host: 'unix:///no/such.sock' } as Access
    expect(await run(['true'], { door: nowhere })).toMatchObject({ status: 125, err: expect.stringContaining('/no/such.sock') })
  })

  it('ends with 137 when its box is taken away under it', async () => {
    const other = await boxes.make()
    const ended = run(['sleep', '100'], { door: boxes.provider.access(other.resource, boxes.config) })
    await until(
      'it runs',
      async () => JSON.stringify(await boxes.call('GET', `/containers/${other.container}/top`)).includes('sleep 100'),
      20_000,
    )
    await boxes.call('POST', `/containers/${other.container}/kill`)
    expect((await ended).status).toBe(137)
  })

  it('runs as the user of the image, who may write the volume', async () => {
    const { Id: image } = await boxes.call<{ Id: string }>(
      'POST',
      `/commit?container=${container}&repo=leasehold-test-guest&tag=1&changes=USER%201234`,
    )
    const config = { ...boxes.config, image: 'leasehold-test-guest:1' }
    const other = await boxes.make({ config })
    expect(
      await run(['sh', '-c', 'id -u; touch /work/mine && echo written'], { door: boxes.provider.access(other.resource, config) }),
    ).toMatchObject({ out: '1234\nwritten\n', err: '' })
    await boxes.provider.remove(other.resource, config, { signal: AbortSignal.timeout(30_000) })
    await boxes.call('DELETE', `/images/${image}?force=1`)
  })
})
