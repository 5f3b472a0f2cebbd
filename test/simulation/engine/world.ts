/**
 * One generated world: users, a cloud that lies, engines that die and stand still, and time. From its seed alone it is the same on every run. In the end
 * everybody calms down, and what is left must be accounted for.
 */
import { removeFreeze, removeHold } from '../../../src/engine/admin/index.ts'
import { silentLog, type Log } from '../../../src/engine/context.ts'
import type { SweepMode } from '../../../src/model/sweep-settings.ts'
import { root } from '../../support/engine.ts'
import { sweepsAs } from '../../support/sweep-settings.ts'
import { lyingCloud, providerName, type LyingCloud, type Nature } from './cloud.ts'
import { makeCrew, type Mutant } from './crew.ts'
import { nextDueAt, type Violation, type WorldDatabase } from './database.ts'
import { judgeEnd } from './end.ts'
import { chanceOf, type Chance } from './random.ts'
import { openUniverse, type Universe } from './universe.ts'
import { makePeople } from './people.ts'
import { makeUsers } from './users.ts'
import { openWatch, type Watch } from './watch.ts'

const t0 = Date.UTC(2026, 5, 1, 12)
/** No orphan of a small world waits for them. */
const ample = { perSweep: 100, sharePercent: 100, perDay: 10_000 }
/** Between two things that happen: less than anything waits for, more than a batch is gathered. */
const momentMs = 20
/** Locks are renewed more often than they end, unless a process stands still. */
const longestStepInCallMs = 9_000

export interface Told {
  seed: number
  violations: Violation[]
  /** What happened in it: a property that holds for want of cases holds nothing. */
  counts: Record<string, number>
  /** Its events, in their order. */
  story: string[]
}

export interface World {
  database: WorldDatabase
  universe: Universe
  cloud: LyingCloud
  watch: Watch
  settings: { mode: SweepMode }
  startedAt: number
  now: () => number
}

const natureOf = (chance: Chance): Nature => ({
  lies: chance.of([15, 30, 50, 5]),
  visibilitySeconds: chance.of([0, 0, 5, 10]),
  disks: chance.of(['none', 'none', 'cascade', 'left behind'] as const),
  lateMs: chance.of([60_000, 60_000, 60_000, 300_000]),
})

/** Without sweeps nobody finds what a provider left behind against its contract, or made for a caller who had died. */
const unsweptNature = (nature: Nature): Nature => ({
  ...nature,
  lateMs: 6_000 * nature.visibilitySeconds,
  disks: nature.disks === 'left behind' ? 'cascade' : nature.disks,
})

export const playWorld = async (database: WorldDatabase, seed: number, mutant: Mutant = {}, log: Log = silentLog): Promise<Told> => {
  const chance = chanceOf(seed)
  database.reset(t0)
  const universe = openUniverse(seed, t0, (passed) => database.setClock(t0 + passed), mutant.monotonic)
  const now = (): number => t0 + universe.now()
  const counts: Record<string, number> = {}
  const count = (what: string, many = 1): void => void (counts[what] = (counts[what] ?? 0) + many)
  const mode = chance.of(['delete', 'delete', 'report', 'off'] as const)
  const settings = { mode: mode as SweepMode, graceMs: chance.of([60_000, 120_000]), intervalMs: 60_000 }
  const nature = natureOf(chance)
  const cloud = lyingCloud(chanceOf(seed ^ 0xc10d), mode === 'off' ? unsweptNature(nature) : nature, now)
  const watch = openWatch(database, cloud, now)
  const more = chanceOf(seed ^ 0x9e0b)
  const limits = { ...ample, perSweep: more.of([ample.perSweep, ample.perSweep, 1, 2]) }
  const bounded = limits.perSweep < ample.perSweep
  const reviewed = mode === 'delete' && more.chance(50)
  const crew = makeCrew({ database, universe, cloud, watch, chance, sweeps: sweepsAs(settings), limits, mutant, log })

  const wait = async (ms: number, asleep: boolean): Promise<void> => {
    for (let left = ms; left > 0;) {
      const dueIn = (nextDueAt(database) ?? Number.POSITIVE_INFINITY) - now()
      const calling = crew.living().some((life) => life.calls > 0)
      const step = asleep ? left : Math.min(left, calling ? longestStepInCallMs : dueIn <= 0 ? left : Math.max(1_000, dueIn))
      await universe.leap(step)
      left -= step
    }
  }
  const people = makePeople({ chance: more, cloud, crew, database, now, unswept: mode === 'off', count })
  const users = makeUsers({ chance, cloud, crew, settings, unswept: mode === 'off', wait, count })

  /** What was lost is found, stands its quarantine, and is looked through, while everything lies on. */
  const lookThrough = async (): Promise<void> => {
    settings.mode = mode
    if (crew.living().length === 0) await crew.start()
    await universe.leap(momentMs)
    for (const life of crew.living()) life.resume()
    crew.ask(
      ({ engine }) => removeFreeze(engine.context, root, '*'),
      () => {},
    )
    for (const { id } of database.rows<{ id: string }>('select id from holds where removed_at is null'))
      crew.ask(
        ({ engine }) => removeHold(engine.context, root, id),
        () => {},
      )
    users.create(3 + more.pick(2))
    await wait(10_000, false)
    people.abandon()
    if (more.chance(50)) await dawdle()
    else await wait(more.of([130, 200, 260]) * 1_000, false)
    for (let left = 4 + more.pick(3); left > 0; left--) {
      people.review()
      await universe.drain()
      await wait(more.of([1, 10, 70]) * 1_000, false)
    }
  }

  /** A plan is approved so late that what changed meanwhile has stood its quarantine once more. */
  const dawdle = async (): Promise<void> => {
    let approve = people.overtake()
    for (let tries = 20; approve === null && tries > 0; tries--) {
      await wait(15_000, false)
      people.plan()
      await universe.drain()
      approve = people.overtake()
    }
    if (approve === null) return
    await wait(settings.graceMs + more.pick(70) * 1_000, false)
    approve()
    await universe.drain()
    await wait(70_000, false)
  }

  const calmDown = async (): Promise<void> => {
    cloud.calm()
    settings.mode = mode
    watch.bounded(limits.perSweep)
    // What waits for an approval that nobody gives would wait for ever.
    limits.perSweep = ample.perSweep
    for (const life of crew.living()) life.resume()
    if (crew.living().length === 0) await crew.start()
    await universe.leap(momentMs)
    await wait(30_000, false)
    // Also of those that were never told to whoever asked.
    for (const { id } of database.rows<{ id: string }>('select id from holds where removed_at is null'))
      crew.ask(
        ({ engine }) => removeHold(engine.context, root, id),
        () => {},
      )
    crew.ask(
      ({ engine }) => removeFreeze(engine.context, root, '*'),
      () => {},
    )
    await universe.leap(momentMs)
    if (chance.chance(50)) users.releaseAll()
    await universe.leap(momentMs)
  }

  try {
    database.run("insert into projects (name, created_at) values ('default', ?)", t0)
    database.run(
      "insert into backends (project, name, provider, config, is_default, created_at) values ('default', 'local', ?, '{}', 1, ?)",
      providerName,
      t0,
    )
    await crew.start()
    for (let left = (reviewed ? 8 : 12) + chance.pick(reviewed ? 16 : 24); left > 0 && watch.violations.length === 0; left--) {
      await users.act()
      people.meanwhile()
      await universe.drain()
      await universe.leap(momentMs)
      count('kills', crew.bury())
      if (crew.living().length === 0 && chance.chance(70)) await crew.start()
    }
    if (watch.violations.length === 0) {
      if (reviewed) await lookThrough()
      await calmDown()
      await judgeEnd({ database, universe, cloud, watch, settings, startedAt: t0, now })
    }
    const [rows] = database.rows<{ swept: number; removed: number; found: number }>(
      "select (select count(*) from sweeps) as swept, (select count(*) from audit where kind = 'intent') as removed, (select count(*) from removals where cause like 'orphan.%') as found",
    )
    const story = database.rows<{ at: number; code: string }>('select at, code from events order by at, rowid')
    return {
      seed,
      violations: [...watch.violations, ...database.violations()],
      counts: { ...counts, ...rows, stalls: crew.stalls(), [`mode ${mode}`]: 1, bounded: bounded ? 1 : 0 },
      story: story.map(({ at, code }) => `+${at - t0} ${code}`),
    }
  } finally {
    // What was under way is refused by the dead.
    crew.end()
    await universe.drain()
    universe.close()
  }
}
