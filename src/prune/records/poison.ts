/** A record that is not read: what is wrong with it, and which release it may be of. It is reported and not touched, and stops nothing else (prune R78). */
import type { ReleaseUid } from '../../model/prune/record-names.ts'

export type PoisonCode =
  | 'bad-name'
  | 'bad-gzip'
  | 'bad-json'
  | 'bad-shape'
  | 'bad-labels'
  | 'unknown-version'
  | 'unsigned'
  | 'unknown-key'
  | 'wrong-signature'
  | 'other-cluster'
  | 'copied'
  | 'stack-label'
  | 'wrong-controller'

export interface Poison {
  code: PoisonCode
  /** The Swarm's id of the config, and its name. */
  id: string
  name: string
  /** Of which release its name says it is; null: of none that can be told. */
  uid: ReleaseUid | null
  /** One sentence, for people. */
  why: string
}

/** Ends the reading of one record, and only of that one. */
export class PoisonError extends Error {
  readonly code: PoisonCode
  constructor(code: PoisonCode, why: string) {
    super(why)
    this.code = code
  }
}
