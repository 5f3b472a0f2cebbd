import type { Migration } from './index.ts'

/** Who this installation is on the Swarms that it deploys to: the keys that sign its records there, and its leases. */
export const controllers: Migration = {
  number: 15,
  name: 'controllers',
  mark: 'expand',
  statements: [
    // Of this installation, and with no private key those of others that a person took over from: what they signed is verified for ever.
    `create table controller_keys (
      public_key text primary key, controller_id text not null, instance_uid text not null, private_key text, created_at bigint not null,
      pinned_by text)`,
    'create index controller_keys_controller on controller_keys (controller_id, created_at)',
    // One row for each Swarm and id: which replica is at it, and what it wrote there last, written down before it was written there.
    `create table controller_leases (
      cluster_id text not null, controller_id text not null, nonce text, beat bigint not null default 0,
      lock_fence bigint not null default 0, lock_owner text, lock_until bigint, primary key (cluster_id, controller_id))`,
  ],
}
