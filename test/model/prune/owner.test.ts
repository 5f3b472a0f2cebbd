import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  applicationOf,
  controllerIdOf,
  controllerIdProblem,
  controllerNameProblem,
  controllerOf,
  declaredButUnclaimed,
  ownedBy,
  ownerId,
  ownerProblem,
  parseStamp,
  stampDiffers,
  stampOf,
} from '../../../src/model/prune/owner.ts'

const controllerIds = fc.stringMatching(/^[^/:\s\uFEFF]{1,40}$/u).filter((id) => controllerIdProblem(id) === null)
const applications = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,20}$/)
const releases = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,20}$/)

describe('an owner id', () => {
  it('is cd/<controller>/<application>, and read back by the same controller alone (prune R1, R4)', () => {
    fc.assert(
      fc.property(controllerIds, applications, controllerIds, (controller, application, other) => {
        const id = ownerId(controller, application)
        expect(id).toBe(`cd/${controller}/${application}`)
        expect(applicationOf(id, controller)).toBe(application)
        expect(controllerOf(id)).toBe(controller)
        if (other !== controller) expect(applicationOf(id, other)).toBeNull()
      }),
    )
  })

  it('of an empty controller id is that of `default`, written and read (prune R1)', () => {
    expect(controllerIdOf('')).toBe('default')
    expect(ownerId('', 'edge')).toBe('cd/default/edge')
    expect(applicationOf(ownerId('', 'edge'), '')).toBe('edge')
    expect(applicationOf(ownerId('', 'edge'), 'default')).toBe('edge')
    expect(applicationOf(ownerId('default', 'edge'), '')).toBe('edge')
  })

  it.each([
    '',
    'cd/prod/',
    'cd/prod',
    'cd/edge',
    'apply/prod',
    'flux/prod',
    'cdx/prod/edge',
    'cd/prodx/edge',
    'edge',
    'cd/prod/edge/extra',
    'CD/prod/edge',
    ' cd/prod/edge',
  ])('that reads %j is none of the controller prod (prune R4)', (text) => {
    expect(applicationOf(text, 'prod')).toBeNull()
  })

  it.each(['a/b', 'a:b', 'a b', 'a\tb', 'a\u00a0b', 'a\u2003b', 'a\u3000', '\ufeffa', 'a'.repeat(41)])(
    'is never made for the controller id %j (prune R3, R13)',
    (id) => {
      expect(controllerIdProblem(id)).not.toBeNull()
      expect(() => ownerId(id, 'edge')).toThrow('controller id')
    },
  )

  it('takes any other controller id, an empty one being no id of its own (prune R3)', () => {
    for (const id of ['prod', 'Prod.1', 'é', 'a'.repeat(40), '-']) expect(controllerIdProblem(id)).toBeNull()
    expect(controllerIdProblem('')).not.toBeNull()
  })

  it.each(['', 'Edge', '-edge', 'edge/x', 'ed ge', 'edge:x', '.e'])('is never made for the application %j (prune R3)', (application) => {
    expect(() => ownerId('prod', application)).toThrow('is no name of an application')
  })

  it('with a colon is refused before anything is written (prune R3)', () => {
    expect(ownerProblem('cd/prod/ed:ge')).not.toBeNull()
    expect(ownerProblem('cd/prod/edge')).toBeNull()
    expect(() => stampOf('cd/prod/ed:ge', 'web')).toThrow('has a : in it')
  })

  it('of a controller whose name a Swarm would not take as a config is refused before any change (prune R79)', () => {
    for (const id of ['é', 'a-', 'a+b', '_']) expect(controllerNameProblem(id)).not.toBeNull()
    for (const id of ['default', 'prod', 'Prod.eu_1', '-a']) expect(controllerNameProblem(id)).toBeNull()
  })
})

describe('a stamp', () => {
  it('names owner, kind and release, and is read back as written (prune R2)', () => {
    expect(stampOf('cd/prod/edge', 'web')).toBe('cd/prod/edge:release/web')
    fc.assert(
      fc.property(controllerIds, applications, releases, (controller, application, release) => {
        const stamp = stampOf(ownerId(controller, application), release)
        expect(parseStamp(stamp)).toEqual({ owner: ownerId(controller, application), release })
        expect(ownedBy({ release, stamp }, controller)).toBe(application)
      }),
    )
  })

  it.each([
    ['that is missing', undefined],
    ['that is blank', ''],
    ['copied from another release', 'cd/prod/edge:release/api'],
    ['of another controller', 'cd/stage/edge:release/web'],
    ['of the command line', 'apply/prod:release/web'],
    ['of another kind', 'cd/prod/edge:stack/web'],
    ['in the old form', 'cd/edge:release/web'],
    ['without a kind', 'cd/prod/edge:web'],
    ['without a name', 'cd/prod/edge:release/'],
    ['with more after its name', 'cd/prod/edge:release/web/x'],
    ['with white space about it', ' cd/prod/edge:release/web'],
    ['with another case', 'cd/prod/edge:Release/web'],
    ['without an owner', ':release/web'],
    ['that is garbage', '\u0000\uffff:::///'],
  ])('%s leaves the release unowned (prune R5, R6, R10)', (_what, stamp) => {
    expect(ownedBy({ release: 'web', stamp }, 'prod')).toBeNull()
  })

  it('that is whole and in its place is not unowned: the twin of all of these', () => {
    expect(ownedBy({ release: 'web', stamp: 'cd/prod/edge:release/web' }, 'prod')).toBe('edge')
  })

  it('of no text whatever owns anything unless it is exactly the one that would be written (prune R5)', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const owner = ownedBy({ release: 'web', stamp: text }, 'prod')
        if (owner !== null) expect(text).toBe(`cd/prod/${owner}:release/web`)
      }),
    )
  })

  it('of somebody else, or unreadable, is a difference to be written anew; none is no difference (prune R9)', () => {
    const wanted = 'cd/prod/edge:release/web'
    expect(stampDiffers(wanted, wanted)).toBe(false)
    expect(stampDiffers(undefined, wanted)).toBe(false)
    for (const now of ['cd/prod/old:release/web', 'apply/x:release/web', 'garbage', '']) expect(stampDiffers(now, wanted)).toBe(true)
  })

  it('that is missing where nothing else differs is told to a person, and not written (prune R11)', () => {
    expect(declaredButUnclaimed(undefined, true)).toBe(true)
    expect(declaredButUnclaimed(undefined, false)).toBe(false)
    expect(declaredButUnclaimed('cd/prod/edge:release/web', true)).toBe(false)
  })
})
