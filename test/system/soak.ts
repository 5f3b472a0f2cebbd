/**
 * `npm run soak`: far more generated worlds than a run of the suite plays, on all cores. Stops at the first world that does not hold, and says how to play that
 * one again. `LEASEHOLD_SOAK_ENGINE` and `LEASEHOLD_SOAK_PURE` say how many (300,000 and 10,000,000), `LEASEHOLD_SOAK_SEED` where they begin,
 * `LEASEHOLD_SOAK_PROCESSES` on how many processes. After them come real coordinators: `LEASEHOLD_SOAK_LEASES` leases and `LEASEHOLD_SOAK_CRASHES` crashes at random
 * moments (10,000 and 200; 0 leases: none), after which nothing may be left (case M11).
 * Before them it plays what is about size: a listing of `LEASEHOLD_SOAK_LARGE` (1,000,000; 0: none).
 */
import { fork, spawn, type ChildProcess } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { properties } from '../simulation/pure/properties.ts'
import type { Played, Task } from '../simulation/soak/player.ts'
import { tasksOf } from '../simulation/soak/tasks.ts'
import { playLarge } from './soak-large.ts'

const number = (variable: string, fallback: number): number => {
  const value = Number(process.env[variable] ?? fallback)
  if (Number.isInteger(value) && value >= 0) return value
  process.stderr.write(`${variable} must be a whole number, 0 or more\n`)
  process.exit(2)
}

const amounts = {
  engine: number('LEASEHOLD_SOAK_ENGINE', 300_000),
  pure: number('LEASEHOLD_SOAK_PURE', 10_000_000),
  leases: number('LEASEHOLD_SOAK_LEASES', 10_000),
  crashes: number('LEASEHOLD_SOAK_CRASHES', 200),
  seed: number('LEASEHOLD_SOAK_SEED', Math.floor(Date.now() / 1000) % 1_000_000_000),
}
const processes = Math.max(1, number('LEASEHOLD_SOAK_PROCESSES', availableParallelism()))
const tasks = tasksOf(amounts, Object.keys(properties))
const played = { engine: 0, pure: 0 }
const players: ChildProcess[] = []
const startedAt = performance.now()
const everyMs = process.stderr.isTTY ? 500 : 30_000
let saidAt = 0

const progress = (): string => {
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  const of = (done: number, all: number): string => `${done.toLocaleString('en')} of ${all.toLocaleString('en')}`
  return `${seconds} s: ${of(played.engine, amounts.engine)} engine worlds, ${of(played.pure, amounts.pure)} pure ones`
}
const say = (last: boolean): void => {
  if (!last && performance.now() - saidAt < everyMs) return
  saidAt = performance.now()
  process.stderr.write(process.stderr.isTTY && !last ? `\r${progress()}` : `${process.stderr.isTTY ? '\r' : ''}${progress()}\n`)
}

const end = (status: number, message: string): void => {
  for (const player of players) player.kill()
  say(true)
  process.stdout.write(`${message}\n`)
  process.exitCode = status
}

/** Case M11, on processes of its own. */
const crash = (): void => {
  if (amounts.leases === 0) return
  const chaos = fileURLToPath(new URL('../chaos/run.ts', import.meta.url))
  const args = ['--seed', amounts.seed, '--leases', amounts.leases, '--crashes', amounts.crashes].map(String)
  spawn(process.execPath, [chaos, ...args], { stdio: 'inherit' }).once('exit', (status) => (process.exitCode = status ?? 1))
}

const program = fileURLToPath(new URL('../simulation/soak/player.ts', import.meta.url))
let ended = false

const employ = (): void => {
  const player = fork(program, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  players.push(player)
  let current: Task | undefined
  const next = (): void => {
    current = tasks.shift()
    if (current) player.send(current)
    else player.disconnect()
  }
  player.on('message', (message: 'ready' | Played) => {
    if (ended) return
    if (message !== 'ready') {
      played[current?.kind ?? 'pure'] += message.count
      if (message.failure !== null) {
        ended = true
        return end(1, message.failure)
      }
      say(false)
    }
    next()
  })
  player.on('exit', (code, signal) => {
    if (!ended && current !== undefined) {
      ended = true
      return end(1, `a process ended (${signal ?? code}) while it played ${JSON.stringify(current)}`)
    }
    players.splice(players.indexOf(player), 1)
    if (!ended && players.length === 0) {
      ended = true
      end(0, `all of them hold, from seed ${amounts.seed} on`)
      crash()
    }
  })
}

const items = number('LEASEHOLD_SOAK_LARGE', 1_000_000)
const tooLarge = items === 0 ? null : await playLarge(items)
if (tooLarge !== null) {
  process.stdout.write(`${tooLarge}\n`)
  process.exit(1)
}
process.stderr.write(`seed ${amounts.seed}, ${processes} processes\n`)
for (let i = 0; i < processes; i++) employ()
