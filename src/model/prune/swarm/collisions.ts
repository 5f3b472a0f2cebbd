/** Releases of one Swarm that would make the same object: the later one would fail half-way, or take the earlier one's for its own (prune R54, R80). */
import { swarmKinds, type SwarmKind } from '../names.ts'
import type { ReleaseObjects } from './types.ts'

export interface Collision {
  kind: SwarmKind
  name: string
  /** The release that has it already, and the one that wants it too. */
  first: string
  second: string
}

export const collisions = (releases: readonly ReleaseObjects[]): Collision[] => {
  const owners = new Map<string, string>()
  return releases.flatMap((objects) =>
    swarmKinds.flatMap((kind) =>
      objects[`${kind}s`].flatMap(({ Name: name }) => {
        // A Swarm compares its names without case; a volume is a node's, which does not.
        const key = `${kind} ${kind === 'volume' ? name : name.toLowerCase()}`
        const first = owners.get(key)
        if (first === undefined) owners.set(key, objects.release)
        return first === undefined || first === objects.release ? [] : [{ kind, name, first, second: objects.release }]
      }),
    ),
  )
}
