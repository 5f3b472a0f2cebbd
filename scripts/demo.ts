/**
 * `npm run demo`: what Leasehold does, in under a minute, on this machine and with the real commands. Everything is made in a temporary folder with a
 * coordinator of its own; nothing is left behind, also after Ctrl-C. What it says about an outcome it has looked up: nothing is played.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { EventView, ExplanationView, FindingView, InstanceView, LeaseView, SweepView } from '../src/model/wire.ts'
import { command, gap, good, heading, mute, output, say, typed } from './demo/screen.ts'
import { DemoError, makeStage, type Ran, type Stage } from './demo/stage.ts'

const graceSeconds = 5
const settings = {
  LEASEHOLD_LOG_LEVEL: 'warn',
  LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: String(graceSeconds),
  LEASEHOLD_SIMULATED_ORPHAN_SWEEP_DELETE: 'on',
}

/** Asks until the answer is there; says that it waits, and for what. @throws DemoError after `seconds` */
const until = async (why: string, seconds: number, check: () => Promise<boolean>): Promise<void> => {
  if (await check()) return
  say(`(A moment: ${why}.)`)
  for (const end = performance.now() + seconds * 1000; ;) {
    await pause(200)
    if (await check()) return
    if (performance.now() > end) throw new DemoError(`waited ${seconds} s in vain: ${why}`)
  }
}

/** What a command printed behind a name. */
const field = ({ out }: Ran, name: string): string => {
  const value = new RegExp(`^${name} +(\\S+)`, 'm').exec(out)?.[1]
  if (value === undefined) throw new DemoError(`the command did not print its ${name}`)
  return value
}

const leaseOf = async (stage: Stage, id: string): Promise<LeaseView> => (await stage.ask<{ lease: LeaseView }>(`/v1/leases/${id}`)).lease
const newest = async (stage: Stage, slug: string): Promise<LeaseView> => {
  const found = (await stage.ask<{ leases: LeaseView[] }>('/v1/leases')).leases.find((one) => one.slug === slug)
  if (!found) throw new DemoError(`the lease "${slug}" is not there`)
  return found
}

const boxes = async (stage: Stage): Promise<void> => {
  heading('1. Two real boxes: one is released, one is forgotten')
  say('A lease is the right to a box. A box is a real process of this machine, with everything that is started in it.')
  await stage.run('warmup', '--slug', 'first')
  const id = field(await stage.run('warmup', '--slug', 'second', '--idle', '5s'), 'id')
  await stage.run('run', '--id', 'first', '--', 'sh', '-c', 'setsid sleep 300 >/dev/null 2>&1 & echo "it left a detached process behind"')
  gap()
  say('The first is given up. Its box goes, with what was left in it, and "gone" is said only when its absence has been looked at.')
  await stage.run('stop', 'first')
  gap()
  say('The second gets no heartbeat, and nobody gives it up. Its idle clock of 5 s ends it, and its box is taken back:')
  await until('its 5 s are not over yet', 20, async () => (await leaseOf(stage, id)).cleanup.state === 'gone')
  await stage.run('list', '--all')
}

/** What became of the interrupted create, from the events of the lease: whatever it is, it is told as it is. */
const outcomeOf = (lease: LeaseView, events: readonly EventView[]): string => {
  const found = events.find((one) => one.code === 'attempt.found')
  const verdict = (found?.payload as { verdict?: string } | undefined)?.verdict
  if (lease.state === 'active' && verdict === 'adopt')
    return `The box was found by its ref, two facts proved it ours, and somebody still waited for it: it was adopted. The command above has its answer, and there is one box, not two.`
  if (lease.state === 'active' && verdict === 'take-back')
    return 'The box was found by its ref, but its making had been cut off half-way: what there was of it was taken back, and another one was made for the same lease.'
  if (lease.state === 'active' && events.some((one) => one.code === 'attempt.absent'))
    return 'The coordinator had died before anything was made. The attempt was looked up by its ref, proved absent, and made once more.'
  if (lease.state === 'active') return 'The answer had been recorded just before the kill: nothing was left to find out.'
  return `The lease is ${lease.state} (${lease.failureCode ?? 'no failure'}): what there was of the box was found by its ref, and is taken back.`
}

const killed = async (stage: Stage): Promise<void> => {
  heading('2. The coordinator is killed while it creates the third')
  say('As soon as the first process of the new box runs, and before the coordinator has recorded it:')
  const pid = stage.pid()
  const created = stage.begin('warmup', '--slug', 'third')
  const box = await stage.killInsideCreate()
  command(`kill -9 ${pid}`)
  gap()
  if (box === null) say('(The box did not come in time; the coordinator was killed all the same.)')
  else say(`The coordinator is dead, and on the disk there is boxes/${box}. It is started again:`)
  command('leasehold serve &')
  await stage.serve()
  gap()
  say('The create that was interrupted above asks again for the same lease:')
  gap()
  await created()
  const third = await newest(stage, 'third')
  const settled = async (): Promise<boolean> => (await leaseOf(stage, third.id)).state !== 'provisioning'
  await until('the interrupted attempt is looked up', 20, settled)
  const { events } = await stage.ask<{ events: EventView[] }>(`/v1/events?target=${third.id}`)
  gap()
  good(outcomeOf(await leaseOf(stage, third.id), events))
  await stage.run('events', '--target', third.id)
  await stage.run('explain', third.id)
}

interface Cloud {
  stranger: string
  copy: string
  unheld: string
}

const cloud = async (stage: Stage): Promise<Cloud> => {
  heading('3. A cloud that lies')
  say(
    'The provider "simulated" is a cloud in a file, which misbehaves on demand. First somebody else starts a machine in the same account, a stranger. Then we lease a machine, and somebody copies it with all its tags.',
  )
  await stage.run('backend', 'add', 'sim', '--provider', 'simulated', '--set', 'group=machine', '--set', 'createDeadlineSeconds=1')
  const stranger = field(await stage.run('simulate', 'launch', '--kind', 'machine', '--location', 'sim-a', '--name', 'stranger'), 'id')
  const held = field(await stage.run('warmup', '--backend', 'sim', '--slug', 'held'), 'resource')
  const copy = field(await stage.run('simulate', 'copy', held), 'id')
  gap()
  say(
    'The third makes a machine that nobody holds: a create that succeeds and answers an error, in a cloud whose listings show it 4 s late. It is looked up, not found, and made once more.',
  )
  await stage.run('simulate', 'fault', 'add', '--op', 'create', '--effect', 'error-after', '--count', '1')
  await stage.run('simulate', 'fault', 'add', '--op', 'list', '--effect', 'lag', '--for', '4s')
  const leased = field(await stage.run('warmup', '--backend', 'sim', '--slug', 'twice'), 'resource')
  await stage.run('simulate', 'fault', 'clear')
  const { out } = await stage.run('simulate', 'list')
  const unheld = out.match(/^i-\S+(?= .* twice )/gm)?.find((id) => id !== leased)
  if (unheld === undefined) throw new DemoError('the machine of the first try is not there')
  return { stranger, copy, unheld }
}

const orphanIn = (sweeps: readonly SweepView[], nativeId: string): boolean =>
  sweeps.some((one) => one.orphans?.some((orphan) => orphan.target.endsWith(`/${nativeId}`)) === true)

const swept = async (stage: Stage, { stranger, copy, unheld }: Cloud): Promise<void> => {
  const key = (id: string): string => `simulated/sim-a/${id}`
  heading('4. A sweep: what is there that nobody holds?')
  say(
    `A sweep lists the whole account and judges what it sees. For this demo an orphan must stand for ${graceSeconds} s and in two complete inventories before it is taken back, instead of 15 minutes, and the mode of "simulated" is delete; it is report unless you say otherwise.`,
  )
  await until('what changed less than 5 s before a listing is not judged', 20, async () =>
    orphanIn((await stage.ask<{ sweeps: SweepView[] }>('/v1/sweeps', { backend: 'sim', dryRun: true })).sweeps, unheld),
  )
  await stage.run('sweep', '--backend', 'sim')
  gap()
  say('The stranger:')
  await stage.run('explain', key(stranger))
  gap()
  say('The copy of a leased machine, which carries the same ref:')
  await stage.run('explain', key(copy))
  gap()
  say('The machine of ours that nobody holds:')
  await stage.run('explain', key(unheld))
  const eligible = async (): Promise<boolean> => {
    const { findings } = await stage.ask<{ findings: FindingView[] }>('/v1/findings?state=open&code=orphan')
    const found = findings.find((one) => one.target.id === key(unheld))
    return found?.quarantine == null || Date.parse(found.quarantine.eligibleAt) <= Date.now()
  }
  await until(`its quarantine of ${graceSeconds} s`, 20, eligible)
  await stage.run('sweep', '--backend', 'sim')
  const gone = async (): Promise<boolean> => {
    const path = `/v1/explain/${encodeURIComponent(key(unheld))}`
    return (await stage.ask<{ explanation: ExplanationView }>(path)).explanation.verdict === 'gone'
  }
  await until('the removal is under way', 20, gone)
  await stage.run('explain', key(unheld))
  await stage.run('simulate', 'list')
  gap()
  good(
    'One machine was taken back: the one that was provably ours and that provably nobody held. The stranger was not touched; the copy is a finding, and waits for a person.',
  )
}

const finish = async (stage: Stage): Promise<void> => {
  heading('5. Nothing is left behind')
  say('The third box is given up too, the coordinator is ended, and its folder is deleted.')
  if ((await newest(stage, 'third')).state === 'active') await stage.run('stop', 'third')
  const { instances } = await stage.ask<{ instances: InstanceView[] }>('/v1/instances')
  const live = instances.filter((one) => one.provider === 'process' && one.state !== 'terminated')
  const [folders, processes] = [stage.boxes().length, stage.processes()]
  await stage.clear()
  output(`boxes: ${live.length}, folders of boxes: ${folders}, processes of boxes: ${processes}; ${stage.folder} is deleted\n`)
  if (live.length + folders + processes > 0) throw new DemoError('something was left, and is cleared away now')
}

const play = async (stage: Stage): Promise<void> => {
  const began = performance.now()
  say(
    `Everything happens in ${stage.folder} and on port ${stage.port}, with a coordinator of its own. It takes less than a minute; Ctrl-C ends it and clears up.`,
  )
  command(`export ${typed(Object.entries(stage.settings).map(([name, value]) => `${name}=${value}`))}`)
  command('leasehold serve &')
  await stage.serve()
  await boxes(stage)
  await killed(stage)
  await swept(stage, await cloud(stage))
  await finish(stage)
  gap()
  say(`That took ${Math.round((performance.now() - began) / 1000)} s. README.md has a tour to try it yourself.`)
}

const stage = await makeStage(settings)
let ending = false
const end = async (status: number): Promise<never> => {
  ending = true
  if (status !== 0) mute()
  await stage.clear()
  process.exit(status)
}
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
  ['SIGHUP', 1],
] as const)
  process.on(signal, () => {
    if (!ending) void end(128 + number)
  })
// A reader that went away (`npm run demo | head`) ends it too, and everything is cleared away.
process.stdout.on('error', () => {
  if (!ending) void end(1)
})

try {
  await play(stage)
  await end(0)
} catch (error) {
  // What fails because it was stopped is no failure of the demo's.
  if (!ending) {
    process.stderr.write(`\ndemo: ${error instanceof DemoError ? error.message : String((error as Error).stack)}\n`)
    await end(1)
  }
}
