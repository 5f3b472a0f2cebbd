/** What others do in an account: they copy, delete, give names again, and take the right to read tags away. */
import type { Chance } from './random.ts'
import type { Thing, Things } from './things.ts'

export type Deed = 'copy' | 'end' | 'reuse-name' | 'hide-tags' | 'show-tags'

/** @returns false: there is nothing to do it to */
export const makeStrangers = (chance: Chance, things: Things, now: () => number): ((deed: Deed) => boolean) => {
  const { all, exists, living, add, identity, end } = things
  const some = (which: (thing: Thing) => boolean): Thing | undefined => {
    const fitting = all.filter(which)
    return fitting.length === 0 ? undefined : chance.of(fitting)
  }
  return (deed) => {
    switch (deed) {
      case 'copy': {
        const original = some((thing) => thing.maker === 'ours' && thing.readable)
        if (!original) return false
        const { kind, nativeId, location } = original.resource
        const at = now()
        add({
          ...original,
          maker: 'copy',
          token: null,
          resource: identity(kind, `${nativeId}-copy-${all.length}`, location),
          attachedTo: [],
          existsAt: at,
          visibleAt: at,
        })
        return true
      }
      case 'end': {
        const one = some((thing) => exists(thing) && thing.endsAt === null)
        if (one) end(one, 0, 'stranger')
        return one !== undefined
      }
      case 'reuse-name': {
        const gone = some((thing) => thing.endsAt !== null && thing.endsAt <= now())
        const taken = gone && living().some((thing) => thing.resource.nativeId === gone.resource.nativeId)
        if (!gone || taken) return false
        const { kind, nativeId, location } = gone.resource
        const at = now()
        // With or without the tags of what had the name before.
        const tags = chance.chance(50) ? gone.tags : { ref: null, installation: null, attempt: null, mac: null }
        add({
          ...gone,
          maker: 'stranger',
          token: null,
          tags,
          resource: identity(kind, nativeId, location),
          attachedTo: [],
          existsAt: at,
          visibleAt: at,
        })
        return true
      }
      case 'hide-tags':
      case 'show-tags': {
        const one = some((thing) => exists(thing) && thing.readable === (deed === 'hide-tags'))
        if (one) one.readable = deed === 'show-tags'
        return one !== undefined
      }
    }
  }
}
