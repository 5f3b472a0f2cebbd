/**
 * `npm run chaos -- --seeds 20 [--first N]` plays so many seeds one after the other and stops at the first that does not hold; `--seed N` plays one again.
 * `--seconds S` is how long there is load, `--leases L --crashes C` plays case M11 instead.
 */
import { parseArgs } from 'node:util'
import { findBefore } from './before.ts'
import { play, type PlayOptions } from './play.ts'
import { fakeTimeLibrary } from './replica.ts'
import { crashesOf, planOf, type Plan } from './schedule.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '20' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    leases: { type: 'string' },
    crashes: { type: 'string' },
  },
})
const whole = (name: string, text: string): number => {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  process.stderr.write(`--${name} must be a whole number\n`)
  process.exit(2)
}
const say = (line: string): void => void process.stderr.write(`${line}\n`)

const mostShown = 40

const before = findBefore()
if (before.kind === 'missing' || fakeTimeLibrary() === null) {
  say(
    before.kind === 'missing'
      ? `two versions can't be played: ${before.why}`
      : 'a wrong clock needs libfaketime: apt-get install libfaketime',
  )
  process.exit(2)
}

const playOne = async (plan: Plan, options: Omit<PlayOptions, 'before' | 'say'>, again: string): Promise<boolean> => {
  const played = await play(plan, { ...options, before, say })
  say(`${played.leases} leases in ${played.seconds.toFixed(0)} s`)
  if (played.problems.length === 0) return true
  const more = played.problems.length - mostShown
  say(`${played.problems.slice(0, mostShown).join('\n')}${more > 0 ? `\nand ${more} more` : ''}\nlogs: ${played.logs}\nonce more: ${again}`)
  return false
}

const first = values.seed === undefined ? whole('first', values.first) : whole('seed', values.seed)
const last = values.seed === undefined ? first + whole('seeds', values.seeds) - 1 : first
const loadMs = whole('seconds', values.seconds) * 1000

if (values.crashes !== undefined || values.leases !== undefined) {
  const crashes = whole('crashes', values.crashes ?? '200')
  const leases = whole('leases', values.leases ?? '10000')
  const plan = crashesOf(first, crashes, 1_500)
  const again = `npm run chaos -- --seed ${first} --leases ${leases} --crashes ${crashes}`
  const holds = await playOne(plan, { leases, clients: 24, pauseMs: 300, settleMs: 300_000 }, again)
  say(holds ? `${leases} leases and ${crashes} crashes: 0 leaked` : 'it does not hold')
  process.exitCode = holds ? 0 : 1
} else {
  for (let seed = first; seed <= last; seed++) {
    const again = `npm run chaos -- --seed ${seed}${loadMs === 60_000 ? '' : ` --seconds ${values.seconds}`}`
    if (!(await playOne(planOf(seed, loadMs), {}, again))) {
      process.exitCode = 1
      break
    }
    if (seed === last) say(`seeds ${first} to ${last} hold`)
  }
}
