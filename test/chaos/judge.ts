/** Does a history hold? Pure, so that it can be shown what it finds: each doctored history of `judge.test.ts` breaks one promise. */
import type { EventFact, History, LeaseFact, Told } from './history.ts'

const terminal: Readonly<Record<string, string>> = { 'lease.released': 'released', 'lease.expired': 'expired', 'lease.failed': 'failed' }
const over = new Set(Object.values(terminal))
const deadline = (lease: LeaseFact): number =>
  Math.min(lease.createdAt + lease.ttlSeconds * 1000, lease.lastTouchedAt + lease.idleSeconds * 1000)

const time = (ms: number): string => new Date(ms).toISOString()

const repeated = <T>(all: readonly T[]): T[] => [...new Set(all.filter((one, i) => all.indexOf(one) !== i))]

/** Each lease ended exactly once, and its events say the same as its row. */
const endings = (history: History, eventsOf: ReadonlyMap<string, EventFact[]>): string[] =>
  history.leases.flatMap((lease) => {
    const mine = (eventsOf.get(lease.id) ?? []).filter((event) => event.code.startsWith('lease.'))
    const count = (code: string): number => mine.filter((event) => event.code === code).length
    const ends = mine.filter((event) => event.code in terminal)
    const problems: string[] = []
    if (!over.has(lease.state)) problems.push(`${lease.id} has not ended: it is ${lease.state}`)
    if (ends.length > 1) problems.push(`${lease.id} ended ${ends.length} times: ${ends.map((event) => event.code).join(', ')}`)
    if (over.has(lease.state) && ends.length === 0) problems.push(`${lease.id} is ${lease.state}, and no event says so`)
    const [end] = ends
    if (end && terminal[end.code] !== lease.state) problems.push(`${lease.id} is ${lease.state}, and its event is ${end.code}`)
    if (count('lease.created') !== 1) problems.push(`${lease.id} was created ${count('lease.created')} times, by its events`)
    if (count('lease.active') > 1) problems.push(`${lease.id} became active ${count('lease.active')} times`)
    if (mine[0] && mine[0].code !== 'lease.created') problems.push(`${lease.id}: its first event is ${mine[0].code}`)
    if (lease.failureCode === 'resource_missing') problems.push(`${lease.id}: its box vanished, and nobody else is here`)
    return problems
  })

/** Nothing ends before its deadline but by its holder; nothing of a live lease is taken back. */
const earlyEnds = (history: History): string[] => {
  const leases = new Map(history.leases.map((lease) => [lease.id, lease]))
  const bound = new Set(history.instances.map((instance) => instance.attempt))
  return history.removals.flatMap((removal) => {
    const lease = leases.get(removal.lease ?? '')
    if (lease === undefined || !bound.has(removal.attempt)) return []
    if (removal.cause === 'expired')
      return removal.openedAt < deadline(lease)
        ? [`${lease.id} expired early: at ${time(removal.openedAt)}, and its deadline was ${time(deadline(lease))}`]
        : []
    return lease.endedAt === null || removal.openedAt < lease.endedAt
      ? [`${removal.id} (${removal.cause}) took back what ${lease.id} held: ${time(removal.openedAt)} is before its end`]
      : []
  })
}

const clientOf = (told: Told, lease: LeaseFact | undefined): string[] => {
  const id = told.lease
  const problems: string[] = []
  if (told.ids.length > 1) problems.push(`one request key made ${told.ids.join(' and ')}`)
  if (told.revived !== null) problems.push(`${id} came back to life: ${told.revived}`)
  if (told.boxMissing !== null) problems.push(`${id} was active without its box: ${told.boxMissing}`)
  if (lease === undefined) return told.created ? [...problems, `${id} was answered, and is not in the database`] : problems
  if (told.released && lease.state !== 'released') problems.push(`${id} was answered as released, and is ${lease.state}`)
  if (told.cancelled && lease.state !== 'released') problems.push(`${id} was answered as cancelled, and is ${lease.state}`)
  if (told.active && lease.state === 'failed') problems.push(`${id} was answered as active, and failed (${lease.failureCode})`)
  if (told.aliveUntil !== null && lease.state === 'expired' && lease.endedAt !== null && lease.endedAt < Date.parse(told.aliveUntil))
    problems.push(`${id} expired at ${time(lease.endedAt)}, and its holder had been promised ${told.aliveUntil}`)
  return problems
}

/** No event twice, none missing, and a follower saw the same feed as whoever reads it at the end. */
const feed = ({ events, followed }: History): string[] => {
  const problems: string[] = []
  const numbers = events.map((event) => event.seq)
  const twice = repeated(events.map((event) => event.id))
  if (twice.length > 0) problems.push(`events that are there twice: ${twice.join(', ')}`)
  const wrong = numbers.findIndex((seq, i) => seq !== i + 1)
  if (wrong >= 0) problems.push(`the feed's numbers do not go up one by one: ${numbers[wrong] ?? 'none'} stands at place ${wrong + 1}`)
  const wrongly = followed.findIndex((one, i) => one.seq !== i + 1 || events[i]?.id !== one.id)
  if (wrongly >= 0)
    problems.push(
      `a follower was told ${followed[wrongly]?.id} as event ${followed[wrongly]?.seq}, in the place of ${events[wrongly]?.id ?? 'nothing'}`,
    )
  if (followed.length < events.length) problems.push(`a follower was told ${followed.length} events of ${events.length}`)
  return problems
}

/** Whatever was made is proved gone, once, and is gone. */
const leaks = (history: History, eventsOf: ReadonlyMap<string, EventFact[]>): string[] => {
  const gone = new Set(history.removals.filter((removal) => removal.state === 'gone').map((removal) => removal.attempt))
  return [
    ...history.left.map((what) => `left behind: ${what}`),
    ...history.strangers.map((what) => `made by no attempt on record: ${what}`),
    ...history.instances.flatMap(({ id, state }) => (state === 'terminated' ? [] : [`instance ${id} is ${state}`])),
    ...history.attempts.flatMap(({ id, outcome }) => {
      if (outcome === 'open') return [`attempt ${id} is still open`]
      return outcome === 'bound' && !gone.has(id) ? [`what attempt ${id} made is not proved gone`] : []
    }),
    ...history.removals.flatMap(({ id, state }) => (state === 'gone' ? [] : [`removal ${id} is ${state}`])),
    ...history.instances.flatMap(({ id }) => {
      const removals = history.removals.filter((removal) => removal.instance === id).length
      return ['removal.opened', 'removal.gone'].flatMap((code) => {
        const told = (eventsOf.get(id) ?? []).filter((event) => event.code === code).length
        return told === removals ? [] : [`instance ${id} had ${removals} removals, and its events tell ${code} ${told} times`]
      })
    }),
  ]
}

/** @returns what does not hold, one sentence each; empty: all of it holds */
export const judge = (history: History): string[] => {
  const eventsOf = new Map<string, EventFact[]>()
  for (const event of history.events) for (const target of event.targets) eventsOf.set(target, [...(eventsOf.get(target) ?? []), event])
  const leases = new Map(history.leases.map((lease) => [lease.id, lease]))
  return [
    ...endings(history, eventsOf),
    ...earlyEnds(history),
    ...history.told.flatMap((told) => clientOf(told, leases.get(told.lease))),
    ...feed(history),
    ...leaks(history, eventsOf),
    ...history.audit.map((problem) => `the audit: ${problem}`),
    ...history.ends
      .filter((end) => end.served)
      .map((end) => `${end.replica} ended by itself (${end.signal ?? end.status}): ${end.log.trim().split('\n').slice(-3).join(' | ')}`),
    ...history.unexpected.map((answer) => `unexpected: ${answer}`),
  ]
}
