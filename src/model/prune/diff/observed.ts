/** What an Engine tells of the objects of a Swarm, as far as a plan needs it. Unknown fields are kept: they may be a difference. */
import type { JsonMap } from '../document.ts'

/** A list that could not be read is not an empty one (I5). */
export type Seen<T> = { ok: true; list: readonly T[] } | { ok: false; why: string }

/** A service, config or secret. */
export interface SeenObject {
  ID: string
  Spec: JsonMap
}

export interface SeenNetwork extends JsonMap {
  Id: string
  Name: string
}

export interface Observed {
  services: Seen<SeenObject>
  networks: Seen<SeenNetwork>
  configs: Seen<SeenObject>
  secrets: Seen<SeenObject>
}
