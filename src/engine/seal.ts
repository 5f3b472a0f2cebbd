/**
 * The sealer: gives committed audit records their number and hash, within seconds. Any number of replicas may run one; the chain's row names the replica
 * that does it, another takes over a few seconds after that one's last word, and its fence makes sure that of two at once exactly one writes (I3).
 * No deletion waits for it: what a deletion needs is its committed intent.
 */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { errorText } from '../lib/redact.ts'
import { sha256 } from '../lib/sha256.ts'
import { sealsFor, type Seal } from '../model/audit-chain.ts'
import { chainRow, unsealedRecords, writeSeals, type Held } from '../store/audit-chain.ts'
import type { Store } from '../store/store.ts'
import type { EngineContext } from './context.ts'

const everyMs = 1_000
const longestPauseMs = 30_000
/** So many are read, hashed and written without yielding: a few ms. */
const batch = 250
/** A sealer that says nothing for so long is followed by another. */
const lockMs = 5_000

export interface Batch {
  held: Held
  seals: Seal[]
}

/** What is to be sealed now, worked out outside of any transaction. Null: nothing, or another replica is at it. */
export const prepareSeals = (store: Store, owner: string, limit = batch): Promise<Batch | null> =>
  store.read(async (session) => {
    // The row before the records: whatever is sealed in between moves its fence.
    const row = await chainRow(session)
    const records = await unsealedRecords(session, limit)
    if (records.length === 0) return null
    if (row.lock_owner !== null && row.lock_owner !== owner && (row.lock_until ?? 0) > (await store.now())) return null
    const head = { seq: row.seq, hash: row.hash }
    return { held: { fence: row.lock_fence, head }, seals: sealsFor(head, records, sha256) }
  })

/** @returns false: another sealer was faster, and nothing was written */
export const applySeals = (store: Store, { held, seals }: Batch, owner: string): Promise<boolean> =>
  store.write((tx) => writeSeals(tx, held, seals, owner, tx.now + lockMs))

/**
 * Seals what is committed, batch by batch.
 * @returns how many records it sealed
 */
export const sealAll = async (store: Store, owner: string, goOn: () => boolean = () => true): Promise<number> => {
  let sealed = 0
  while (goOn()) {
    const prepared = await prepareSeals(store, owner)
    if (prepared === null) break
    if (!(await applySeals(store, prepared, owner))) break
    sealed += prepared.seals.length
    if (prepared.seals.length < batch) break
    await yieldToOthers()
  }
  return sealed
}

export interface Sealer {
  start(): void
  /** Seals what is left, as long as the database answers at once. */
  stop(): Promise<void>
}

export const createSealer = ({ store, replicaId, log }: Pick<EngineContext, 'store' | 'replicaId' | 'log'>): Sealer => {
  let timer: NodeJS.Timeout | undefined
  let running: Promise<void> = Promise.resolve()
  let stopping = false
  let failures = 0
  const run = async (): Promise<void> => {
    try {
      await sealAll(store, replicaId, () => !stopping)
      failures = 0
    } catch (error) {
      failures++
      log.error({ error: errorText(error) }, 'audit records could not be sealed; trying again')
    }
  }
  const runThenWait = async (): Promise<void> => {
    await run()
    next()
  }
  const next = (): void => {
    if (stopping) return
    timer = setTimeout(
      () => {
        running = runThenWait()
      },
      Math.min(longestPauseMs, everyMs * 2 ** failures),
    )
  }
  return {
    start: next,
    async stop() {
      stopping = true
      clearTimeout(timer)
      await running
      if (timer === undefined) return
      await sealAll(store, replicaId).catch((error: unknown) =>
        log.warn({ error: errorText(error) }, 'the last audit records are sealed by the next start'),
      )
    },
  }
}
