/** This process among those that work on the database: who it is, its alive mark, and which others are known to be dead. */
import { hostname } from 'node:os'
import { bootId, findMachineId, pidNamespaceInode, processAlive, processStart } from '../lib/host.ts'
import { queueTables, voidLocks } from '../store/due.ts'
import { insertReplica, markStopped, runningReplicas, type ReplicaRow } from '../store/replicas.ts'
import type { Tx } from '../store/store.ts'

export interface Self {
  id: string
  host: string
  machine_id: string
  boot_id: string
  pid_namespace: string
  pid: number
  pid_start: string
  version: string
}

/** Facts that make this process itself. Where the host does not say them, others only ever wait for its locks to end. */
export const describeSelf = (id: string, version: string): Self => ({
  id,
  host: hostname(),
  machine_id: findMachineId() ?? `unknown-${id}`,
  boot_id: bootId() ?? `unknown-${id}`,
  pid_namespace: pidNamespaceInode('self') ?? `unknown-${id}`,
  pid: process.pid,
  pid_start: processStart(process.pid) ?? '',
  version,
})

/** Provably dead: of this machine, and either of another boot or no longer among the processes that we can see. */
const isDead = (self: Self, other: ReplicaRow): boolean => {
  if (other.id === self.id || other.machine_id !== self.machine_id) return false
  if (other.boot_id !== self.boot_id) return true
  return other.pid_namespace === self.pid_namespace && !processAlive(other.pid, other.pid_start)
}

/** Rows of a replica that is known to be dead are taken over at once; those of others when their locks end. */
export const buryDead = async (tx: Tx, self: Self): Promise<string[]> => {
  const dead = (await runningReplicas(tx)).filter((row) => isDead(self, row)).map((row) => row.id)
  await markStopped(tx, dead)
  for (const table of queueTables) await voidLocks(tx, table, dead)
  return dead
}

/** @param skewMs this process's wall clock minus the database's clock */
export const register = (tx: Tx, self: Self, skewMs: number): Promise<void> => insertReplica(tx, { ...self, skew_ms: Math.round(skewMs) })
