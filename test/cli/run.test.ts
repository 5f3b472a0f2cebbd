import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { Claim } from '../../src/model/claim.ts'
import type { LeaseView } from '../../src/model/wire.ts'
import { openClaims } from '../../src/store/claims.ts'
import { cleanup, leaseView, startCoordinator, type FakeCoordinator } from './coordinator.ts'
import { openDoor, sandbox, type Sandbox } from './run-cli.ts'

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

const claims = (): Claim[] => openClaims(box.data).list().claims
const creates = (): unknown[] => coordinator.calls('POST', /^\/v1\/leases$/).map(({ body }) => body)
const releases = (): unknown[] => coordinator.calls('POST', /\/release$/).map(({ body }) => body)
const until = async (what: string, condition: () => boolean, limitMs = 10_000): Promise<void> => {
  for (const deadline = performance.now() + limitMs; !condition(); await sleep(10))
    if (performance.now() > deadline) throw new Error(`never: ${what}`)
}

describe('run', () => {
  it('exits with the status of the command, releases with no word on deletion, and drops the claim with the proof', async () => {
    coordinator.removal = ['removing', 'verifying', 'gone']
    const { status, out, err } = await box.run(['run', '--', 'sh', '-c', 'exit 7'])
    expect([status, out]).toEqual([7, ''])
    expect(err).toMatch(/^leasehold: lease lh_[0-9a-f]{12} \(brave-otter\)\n$/)
    expect(releases()).toEqual([{}])
    expect(claims()).toEqual([])
  })

  it('takes what stands behind -- for the command, its own flags and words included', async () => {
    let command: string[] = []
    const door = () =>
      Promise.resolve({
        ...openDoor,
        spawnInBox: (...call: Parameters<typeof openDoor.spawnInBox>) => (
          (command = call[1]),
          openDoor.spawnInBox(call[0], ['true'], call[2])
        ),
      })
    await box.run(['run', '--ttl', '5m', '--', 'tool', '--data', 'x', '--', '-q', 'list'], { door })
    expect(command).toEqual(['tool', '--data', 'x', '--', '-q', 'list'])
    await box.run(['run', 'tool', '--json', '-n'], { door })
    expect(command).toEqual(['tool', '--json', '-n'])
  })

  it("runs in the caller's folder and environment", async () => {
    let options: unknown
    const door = () =>
      Promise.resolve({
        ...openDoor,
        spawnInBox: (...call: Parameters<typeof openDoor.spawnInBox>) => ((options = call[2]), openDoor.spawnInBox(...call)),
      })
    await box.run(['run', '--', 'true'], { door })
    expect(options).toEqual({ cwd: join(box.root, 'repository'), env: box.environment, stdio: 'inherit' })
  })

  it('is 128 + n for a command that a signal ended', async () => {
    expect((await box.run(['run', '-q', '--', 'sh', '-c', 'kill -TERM $$'])).status).toBe(143)
  })

  it('says nothing with -q', async () => {
    expect(await box.run(['run', '-q', '--', 'true'])).toEqual({ status: 0, out: '', err: '' })
  })

  it('--keep releases nothing and says how to reach and end it', async () => {
    const { status, err } = await box.run(['run', '--keep', '--', 'true'])
    expect(status).toBe(0)
    expect(err).toMatch(/kept lh_\w+: use it with "leasehold run --id brave-otter -- COMMAND", end it with "leasehold stop brave-otter"/)
    expect(releases()).toEqual([])
    expect(coordinator.calls('POST', /^\/v1\/leases$/)[0]?.body).toMatchObject({ keep: true })
    expect(claims()).toHaveLength(1)
  })

  it('beats while the command runs, at a third of the idle time (leases R26)', async () => {
    const { status } = await box.run(['run', '--idle', '1s', '--', 'sleep', '1.2'])
    expect(status).toBe(0)
    const beats = coordinator.calls('POST', /heartbeat$/).length
    expect(beats).toBeGreaterThanOrEqual(2)
    expect(beats).toBeLessThanOrEqual(4)
  })

  it('tolerates beats that fail, and warns once when the lease has ended', async () => {
    let beats = 0
    coordinator.override = ({ path }) => {
      if (!path.endsWith('/heartbeat')) return null
      beats += 1
      return beats < 3 ? 'drop' : { status: 409, body: { error: 'lease_ended', message: 'the lease has ended' } }
    }
    const { status, err } = await box.run(['run', '-q', '--idle', '1s', '--', 'sleep', '2'])
    expect(status).toBe(0)
    expect(beats).toBe(3)
    expect(err.match(/has ended under the command/g)).toHaveLength(1)
  })

  it.each([
    ['the create fails', { status: 500, body: { error: 'internal', message: 'oh' } }, 125],
    ['the backend is not there', { status: 404, body: { error: 'not_found', message: 'no such backend' } }, 125],
    ['the input is bad', { status: 400, body: { error: 'bad_slug', message: 'no' } }, 2],
  ])('is its own failure when %s', async (_what, reply, exit) => {
    coordinator.override = ({ path }) => (path === '/v1/leases' ? reply : null)
    const { status, out } = await box.run(['run', '--', 'true'])
    expect([status, out]).toEqual([exit, ''])
  })

  it('is 125 when no coordinator is configured or answers', async () => {
    expect((await box.run(['run', '--', 'true'], { environment: {} })).status).toBe(125)
    await coordinator.close()
    expect((await box.run(['run', '--', 'true'])).status).toBe(125)
  })

  it('is 125 when the box can not be entered, and gives the lease back', async () => {
    const door = () =>
      Promise.resolve({
        ...openDoor,
        spawnInBox: () => {
          throw new Error('the box is gone')
        },
      })
    expect(await box.run(['run', '--', 'true'], { door })).toMatchObject({ status: 125, err: expect.stringContaining('the box is gone') })
    expect((await box.run(['run', '--', '/no/such/program'])).status).toBe(125)
    expect(releases()).toEqual([{}, {}])
  })

  it('keeps the status of the command when the release fails, and says what is left', async () => {
    coordinator.override = ({ path }) =>
      path.endsWith('/release') ? { status: 409, body: { error: 'cleanup_in_progress', message: 'later' } } : null
    const { status, err } = await box.run(['run', '--', 'sh', '-c', 'exit 3'])
    expect(status).toBe(3)
    expect(err).toMatch(/warning: lease lh_\w+ could not be released: later/)
    expect(claims()).toHaveLength(1)
  })

  it('--no-wait keeps the claim until the removal is seen to be gone', async () => {
    coordinator.removal = ['removing', 'gone']
    expect((await box.run(['run', '--no-wait', '--', 'true'])).status).toBe(0)
    expect(claims()).toHaveLength(1)
  })
})

describe('run --id', () => {
  const lease = leaseView()
  const elsewhere = (): { folder: string } => {
    mkdirSync(join(box.root, 'other/.git'), { recursive: true })
    return { folder: join(box.root, 'other') }
  }
  beforeEach(() => void coordinator.leases.set(lease.id, leaseView()))

  it('touches the lease, claims it, and never releases it', async () => {
    expect((await box.run(['run', '--id', 'brave-otter', '--', 'true'])).status).toBe(0)
    expect(coordinator.calls('POST', /heartbeat$/)).toHaveLength(1)
    expect(coordinator.calls('POST', /^\/v1\/leases$/)).toEqual([])
    expect(releases()).toEqual([])
    expect(claims()).toMatchObject([{ leaseID: lease.id, repoRoot: join(box.root, 'repository'), labels: { state: 'ready' } }])
  })

  it('refuses another repository with exit 2 and advice, runs nothing and touches nothing (leases R110)', async () => {
    await box.run(['run', '--id', lease.id, '--', 'true'])
    coordinator.seen.length = 0
    const before = claims()
    let ran = false
    const door = () => ((ran = true), Promise.resolve(openDoor))
    const { status, err } = await box.run(['run', '--id', lease.id, '--', 'true'], { ...elsewhere(), door })
    expect([status, ran]).toEqual([2, false])
    expect(err).toMatch(
      /is claimed from .*\/repository\. Use it from there, or move the claim here with "leasehold run --id lh_0123456789ab --reclaim/,
    )
    expect(coordinator.calls('POST', /./)).toEqual([])
    expect(claims()).toEqual(before)
  })

  it('--reclaim moves the claim: repository and time, in one write (leases R110)', async () => {
    await box.run(['run', '--id', lease.id, '--', 'true'])
    const [before] = claims()
    const later = Date.parse('2030-01-01T01:00:00Z')
    expect((await box.run(['run', '--id', lease.id, '--reclaim', '--', 'true'], { ...elsewhere(), now: () => later })).status).toBe(0)
    const [after] = claims()
    expect(after).toMatchObject({
      repoRoot: join(box.root, 'other'),
      claimedAt: '2030-01-01T01:00:00Z',
      lastUsedAt: '2030-01-01T01:00:00Z',
    })
    expect(after?.revision).not.toBe(before?.revision)
    expect((await box.run(['run', '--id', lease.id, '--', 'true'])).status).toBe(2)
  })

  it('is 125 for a lease that has ended or is not there, and drops the claim of one that is gone', async () => {
    await box.run(['run', '--id', lease.id, '--', 'true'])
    Object.assign(coordinator.leases.get(lease.id) as LeaseView, {
      state: 'expired',
      endedAt: '2030-01-01T00:00:02.000Z',
      cleanup: cleanup('gone'),
    })
    expect(await box.run(['run', '--id', lease.id, '--', 'true'])).toMatchObject({
      status: 125,
      err: expect.stringContaining('has ended: it is expired'),
    })
    expect(claims()).toEqual([])
    expect((await box.run(['run', '--id', 'nobody', '--', 'true'])).status).toBe(125)
  })
})

describe('signals to run', () => {
  /** `run` in a process of its own, whose boxes are ordinary children with their output passed on. */
  const start = (command: string[]): { child: ChildProcess; out: () => string; err: () => string; exit: Promise<number | null> } => {
    const script = `
      import { spawn } from 'node:child_process'
      import { runCli } from './src/cli/main.ts'
      import { processIo } from './src/cli/support/io.ts'
      const door = {
        spawnInBox: (access, command, options) => spawn(command[0], command.slice(1), { ...options, detached: true }),
        signalInBox: (access, child, signal) => child.kill(signal),
      }
      process.exitCode = await runCli(process.argv.slice(1), { ...processIo(), door: async () => door })`
    const child = spawn(process.execPath, ['--no-warnings', '--input-type=module', '-e', script, '--', 'run', '--', ...command], {
      cwd: join(import.meta.dirname, '../..'),
      env: box.environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (chunk) => (out += chunk))
    child.stderr.on('data', (chunk) => (err += chunk))
    onTestFinished(() => void child.kill('SIGKILL'))
    return { child, out: () => out, err: () => err, exit: new Promise((resolve) => child.on('exit', (code) => resolve(code))) }
  }

  it.each([['SIGINT'], ['SIGQUIT'], ['SIGTERM'], ['SIGHUP']] as const)(
    '%s is passed to the command, whose own status stands, and the lease is released',
    async (signal) => {
      const run = start(['sh', '-c', `trap 'echo caught; exit 9' ${signal.slice(3)}; echo ready; while :; do sleep 0.05; done`])
      await until('the command runs', () => run.out().includes('ready'))
      run.child.kill(signal)
      expect([await run.exit, run.out()]).toEqual([9, 'ready\ncaught\n'])
      expect(releases()).toEqual([{}])
      expect(claims()).toEqual([])
    },
    20_000,
  )

  it('a command that a passed signal ends is 128 + n', async () => {
    const run = start(['sh', '-c', 'echo ready; exec sleep 30'])
    await until('the command runs', () => run.out().includes('ready'))
    run.child.kill('SIGTERM')
    expect(await run.exit).toBe(143)
    expect(releases()).toEqual([{}])
  }, 20_000)

  it('a second Ctrl-C does not wait for the command any more, and still releases', async () => {
    const run = start(['sh', '-c', `trap 'echo caught' INT; echo pid $$; while :; do sleep 0.05; done`])
    await until('the command runs', () => /pid \d+\n/.test(run.out()))
    const pid = Number(/pid (\d+)/.exec(run.out())?.[1])
    onTestFinished(() => void process.kill(pid, 'SIGKILL'))
    run.child.kill('SIGINT')
    await until('the first is passed on', () => run.out().includes('caught'))
    // The same wish twice within 200 ms counts as one, so it is repeated until it counts.
    const again = setInterval(() => run.child.kill('SIGINT'), 100)
    onTestFinished(() => clearInterval(again))
    await until('it is released', () => releases().length > 0)
    clearInterval(again)
    expect(await run.exit).toBe(130)
    expect(releases()).toEqual([{}])
  }, 20_000)

  it('a first Ctrl-C does not end the wait for the proof, and says that a second one does', async () => {
    coordinator.removal = Array.from({ length: 500 }, () => 'removing' as const)
    const run = start(['true'])
    await until('it is released', () => releases().length > 0)
    run.child.kill('SIGINT')
    await until('it says what a second one does', () => /waiting for the proof .* a second Ctrl-C stops waiting/.test(run.err()))
    coordinator.removal = ['gone']
    expect(await run.exit).toBe(0)
    expect(run.err()).not.toContain('warning')
    expect(claims()).toEqual([])
  }, 20_000)

  it('a second Ctrl-C ends the wait for the proof, and says what is left', async () => {
    coordinator.removal = Array.from({ length: 500 }, () => 'removing' as const)
    const run = start(['true'])
    await until('it is released', () => releases().length > 0)
    run.child.kill('SIGINT')
    await until('the first is heard', () => run.err().includes('waiting for the proof'))
    const before = performance.now()
    run.child.kill('SIGINT')
    expect(await run.exit).toBe(0)
    expect(performance.now() - before).toBeLessThan(10_000)
    expect(run.err()).toContain('its removal is not proved: the wait was interrupted')
    expect(claims()).toHaveLength(1)
  }, 20_000)

  it('a Ctrl-C that is passed on says, after a moment, that a second one does not wait', async () => {
    const run = start(['sh', '-c', `trap 'echo caught' INT; echo ready; n=0; while [ $n -lt 40 ]; do sleep 0.05; n=$((n + 1)); done`])
    await until('the command runs', () => run.out().includes('ready'))
    run.child.kill('SIGINT')
    await until('it says so', () => /the command has got SIGINT, and is waited for; a second Ctrl-C does not wait/.test(run.err()))
    expect(await run.exit).toBe(0)
    expect(claims()).toEqual([])
  }, 20_000)

  it('Ctrl-C during the create cancels it by its key, and exits 130 (leases R10)', async () => {
    coordinator.override = ({ method, path }) => (method === 'POST' && path === '/v1/leases' ? 'hang' : null)
    const run = start(['true'])
    await until('the create is sent', () => coordinator.calls('POST', /^\/v1\/leases$/).length === 1)
    run.child.kill('SIGINT')
    expect(await run.exit).toBe(130)
    const { leaseID, createAttemptID } = creates()[0] as Record<string, string>
    expect(coordinator.calls('POST', /cancel-create$/)).toMatchObject([
      { path: `/v1/leases/${leaseID}/cancel-create`, body: { createAttemptID } },
    ])
    expect(claims()).toEqual([])
  }, 20_000)

  it('Ctrl-C while it is provisioning cancels it too', async () => {
    coordinator.override = ({ method, path }, fake) => {
      if (method !== 'GET' || !path.startsWith('/v1/leases/')) return null
      return { status: 200, body: { lease: fake.leases.get(path.slice('/v1/leases/'.length)) } }
    }
    coordinator.created = 'provisioning'
    const run = start(['true'])
    await until('it is waited for', () => coordinator.calls('GET', /^\/v1\/leases\/lh_/).length > 0)
    run.child.kill('SIGTERM')
    expect(await run.exit).toBe(143)
    expect(coordinator.calls('POST', /cancel-create$/)).toHaveLength(1)
    expect(run.out()).toBe('')
    expect(claims()).toEqual([])
  }, 20_000)
})
