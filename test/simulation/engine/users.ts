/** What happens in a world, one thing at a time: users and operators ask, strangers meddle, engines die and stand still, time passes. */
import { addFreeze, addHold, removeFreeze, removeHold } from '../../../src/engine/admin/index.ts'
import { cancelCreate, createLease, releaseLease, type CreateInput } from '../../../src/engine/leases/index.ts'
import type { SweepMode } from '../../../src/model/sweep-settings.ts'
import { ann, root } from '../../support/engine.ts'
import { providerName, type LyingCloud } from './cloud.ts'
import type { Crew } from './crew.ts'
import type { Chance } from './random.ts'

export interface Stage {
  chance: Chance
  cloud: LyingCloud
  crew: Crew
  settings: { mode: SweepMode }
  /** Sweeps are off in it from beginning to end. */
  unswept: boolean
  /** @param asleep the whole machine: nothing happens until it wakes up */
  wait: (ms: number, asleep: boolean) => Promise<void>
  count: (what: string) => void
}

export interface Users {
  act(): Promise<void>
  /** So many more leases. */
  create(count: number): void
  /** Everybody gives up what they have. */
  releaseAll(): void
}

type Input = CreateInput & { leaseID: string }
const mostLeases = 6

export const makeUsers = ({ chance, cloud, crew, settings, unswept, wait, count }: Stage): Users => {
  const inputs: Input[] = []
  const holds: string[] = []
  let frozen = false
  const hex = (length: number): string => Array.from({ length }, () => chance.pick(16).toString(16)).join('')
  const ask = (request: Parameters<Crew['ask']>[0]): void => crew.ask(request, () => count('refused'))

  const create = (input: Input): void =>
    ask(async ({ engine }) => {
      await createLease(engine.context, ann, input)
      count('created')
    })
  const fresh = (): Input => ({
    leaseID: `lh_${hex(12)}`,
    ttlSeconds: chance.of([3_600, 600, 1_800]),
    idleTimeoutSeconds: chance.of([600, 120, 300]),
    keep: chance.chance(10),
    ...(chance.chance(75) ? { createAttemptID: `cat_${hex(32)}` } : {}),
  })
  const hold = (input: Input | undefined): void => {
    const boxes = cloud.things.filter((thing) => thing.resource.kind === 'box')
    const target =
      chance.chance(50) && boxes.length > 0
        ? { targetType: 'resource' as const, targetID: `${providerName}/here/${chance.of(boxes).resource.nativeId}` }
        : input
          ? { targetType: 'lease' as const, targetID: input.leaseID }
          : { targetType: 'project' as const, targetID: 'default' }
    const durationSeconds = chance.of([null, 300])
    ask(async ({ engine }) => {
      holds.push((await addHold(engine.context, root, { ...target, reason: 'not this', durationSeconds })).id)
      count('holds')
    })
  }

  const act: Users['act'] = async () => {
    const input = inputs.length === 0 ? undefined : chance.of(inputs)
    const what = chance.weighted({
      create: inputs.length < mostLeases ? 14 : 0,
      again: 3,
      beat: 10,
      release: 9,
      cancel: 2,
      hold: 4,
      unhold: 3,
      freeze: 1,
      unfreeze: 3,
      mode: unswept ? 0 : 1,
      meddle: 6,
      kill: 5,
      dies: 6,
      stalls: 5,
      resume: 6,
      start: 4,
      wait: 12,
    })
    switch (what) {
      case 'create': {
        const made = fresh()
        inputs.push(made)
        return create(made)
      }
      case 'again':
        // The same request once more: who asked had no answer, or has forgotten it.
        if (input) create(input)
        return
      case 'beat':
        if (input) ask(({ beat }) => beat(ann, input.leaseID, {}))
        return
      case 'release': {
        const remove = chance.of([true, true, true, undefined, false])
        if (input) ask(({ engine }) => releaseLease(engine.context, ann, input.leaseID, remove === undefined ? {} : { delete: remove }))
        return
      }
      case 'cancel': {
        const key = input?.createAttemptID
        if (input && key !== undefined) ask(({ engine }) => cancelCreate(engine.context, ann, input.leaseID, key))
        return
      }
      case 'hold':
        return hold(input)
      case 'unhold': {
        const id = holds.shift()
        if (id !== undefined) ask(({ engine }) => removeHold(engine.context, root, id))
        return
      }
      case 'freeze':
        frozen = true
        return ask(({ engine }) => addFreeze(engine.context, root, { reason: 'stop' }))
      case 'unfreeze':
        if (frozen) ask(({ engine }) => removeFreeze(engine.context, root, '*'))
        frozen = false
        return
      case 'mode':
        settings.mode = chance.of(['report', 'delete', 'off'] as const)
        return
      case 'meddle':
        if (cloud.meddle(chance.weighted({ copy: 4, end: 3, 'reuse-name': 3, 'hide-tags': 1, 'show-tags': 1 }))) count('meddled')
        return
      case 'kill':
        crew.living()[0]?.kill()
        return
      case 'dies':
        crew.living().at(-1)?.light(chance.pick(30), what)
        return
      case 'stalls':
        crew.living()[0]?.light(chance.pick(10), what)
        // Another one sees its rows come back.
        if (crew.living().length < 2) await crew.start()
        return
      case 'resume':
        for (const life of crew.living()) if (life.stalled) life.resume()
        return
      case 'start':
        if (crew.living().length < 2) await crew.start()
        return
      case 'wait':
        return wait(chance.of([1, 5, 15, 31, 60, 120, 300, 900]) * 1000, chance.chance(10))
    }
  }
  return {
    act,
    create(many) {
      for (let left = many; left > 0; left--) {
        const made = fresh()
        inputs.push(made)
        create(made)
      }
    },
    releaseAll() {
      for (const { leaseID } of inputs) ask(({ engine }) => releaseLease(engine.context, root, leaseID, { delete: true }))
    },
  }
}
