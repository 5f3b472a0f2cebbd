/** The tables of prune's controllers; see `schema.ts`. What is deployed stands on the Swarm and not here. */
import type { Generated } from 'kysely'

export interface ControllerKeysTable {
  /** SPKI, DER, base64. */
  public_key: string
  controller_id: string
  instance_uid: string
  /** PKCS 8, DER, base64; null: another installation's, which a person took over from. Never leaves the database but to sign. */
  private_key: string | null
  created_at: number
  /** Who said that it may be trusted; null: it was made here. */
  pinned_by: string | null
}

export interface ControllerLeasesTable {
  cluster_id: string
  controller_id: string
  /** Of the process that wrote to the Swarm last; null: none did. */
  nonce: string | null
  /** The highest beat that any process of this database may have written there. */
  beat: Generated<number>
  lock_fence: Generated<number>
  lock_owner: string | null
  lock_until: number | null
}
