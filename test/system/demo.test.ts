/** `npm run demo`, whole, as a newcomer runs it: its story is true, and nothing of it is left, also after Ctrl-C. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { listPids } from '../../src/lib/host.ts'
import { processesWith } from '../support/boxes.ts'
import { cleanEnvironment } from '../support/coordinator.ts'
import { until } from '../support/until.ts'

const root = resolve(import.meta.dirname, '../..')

const commandLine = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
/** The demo's folder stands in the command line of everything that it starts. */
const processesOf = (folder: string): number[] => (listPids() ?? []).filter((pid) => commandLine(pid).includes(folder))

describe('the demo', () => {
  const running = new Set<ReturnType<typeof start>>()
  const start = () => {
    // What the user has set for a coordinator of their own must not matter.
    const env = cleanEnvironment({
      LEASEHOLD_DATABASE_URL: 'postgres://nowhere.invalid/x',
      LEASEHOLD_TOKEN: 'wrong',
      LEASEHOLD_URL: 'none',
    })
    const child = spawn(process.execPath, ['scripts/demo.ts'], { cwd: root, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let out = ''
    child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (out += chunk.toString()))
    const demo = { child, out: () => out, ended: once(child, 'close') as Promise<[number | null]> }
    running.add(demo)
    return demo
  }
  const folderOf = (out: string): string => /^Everything happens in (\S+)/.exec(out)?.[1] ?? 'nowhere'
  const expectNothingLeft = (out: string): void => {
    const folder = folderOf(out)
    expect(folder).toContain('leasehold-demo-')
    expect(existsSync(folder)).toBe(false)
    expect(processesOf(folder)).toEqual([])
    const refs = [...out.matchAll(/\(ref (\w{12})\)/g)].map((found) => found[1] ?? '')
    expect(refs.length).toBeGreaterThan(0)
    expect(refs.flatMap((ref) => processesWith('LEASEHOLD_REF', ref))).toEqual([])
  }
  afterEach(async () => {
    for (const { child, ended } of running) {
      child.kill('SIGTERM')
      await ended
    }
    running.clear()
  })

  it('tells of a release, an idle end, a killed coordinator and a sweep, and leaves nothing behind', { timeout: 180_000 }, async () => {
    const began = performance.now()
    const demo = start()
    const [status] = await demo.ended
    const out = demo.out()
    expect(status, out).toBe(0)
    process.stdout.write(`the demo took ${Math.round((performance.now() - began) / 1000)} s\n`)
    // eslint-disable-next-line no-control-regex
    expect(out, 'no colours without a terminal').not.toMatch(/\u001b/)
    const story = [
      /^ {2}lh_\w{12} \(first\) is released, and its box is proved gone$/m,
      /^ {2}lh_\w{12} +second +expired +gone /m,
      /^\$ kill -9 \d+$/m,
      /asking again for the same lease$/m,
      // Whatever the kill met, the lease that was asked for is there in the end.
      /^ {2}slug +third\n {2}state +active$/m,
      /^ {4}tracked \(tracked\.bound\): An active instance is bound to it\./m,
      /^ {7}1 {2}orphan\.not-the-bound-one /m,
      /^ {4}foreign: It carries no ref/m,
      /^ {4}contradiction \(contradiction\.tags-only\)/m,
      /^ {4}orphan \(orphan\.not-the-bound-one\)[^]*Held back by: quarantine: 1 more complete inventory .*\n {2}What would change this verdict: a hold or a keep label/m,
      /^ {2}began to take back 1:$/m,
      /^ {4}gone: It was taken back, and its absence is proved\./m,
      /^ {2}boxes: 0, folders of boxes: 0, processes of boxes: 0; .* is deleted$/m,
    ]
    let from = 0
    for (const line of story) {
      const at = out.slice(from).search(line)
      expect(at, `${line} after:\n${out.slice(Math.max(0, from - 200), from)}`).toBeGreaterThanOrEqual(0)
      from += at
    }
    // Of the cloud's machines exactly one is gone: neither the stranger, nor the copy, nor one that is leased.
    const last = out.slice(out.lastIndexOf('$ leasehold simulate list'))
    expect([...last.matchAll(/^ {2}i-\d+ +machine +sim-a +(\w+)/gm)].map((found) => found[1])).toEqual([
      'stranger',
      'held',
      'held',
      'twice',
    ])
    expectNothingLeft(out)
  })

  it('leaves nothing behind after Ctrl-C, in the middle of whatever it does', { timeout: 120_000 }, async () => {
    const demo = start()
    await until(() => /is dead|\$ kill -9/.test(demo.out()), 'the coordinator is killed', 90_000)
    const before = demo.out()
    expect(processesOf(folderOf(before)).length).toBeGreaterThan(0)
    demo.child.kill('SIGINT')
    const [status] = await demo.ended
    expect(status).toBe(130)
    expectNothingLeft(demo.out())
  })
})
