/** Audit records without an engine: written, sealed, tampered with, verified. */
import { verifyAudit, type VerifyInput } from '../../src/engine/admin/audit-verify.ts'
import { sealAll } from '../../src/engine/seal.ts'
import { sha256 } from '../../src/lib/sha256.ts'
import { sealsFor, type ChainPoint } from '../../src/model/audit-chain.ts'
import type { AuditKind, AuditVerificationView } from '../../src/model/wire-audit.ts'
import { appendAudit, type NewAudit } from '../../src/store/audit.ts'
import { chainRow, sealedAfter } from '../../src/store/audit-chain.ts'
import type { Store } from '../../src/store/store.ts'
import { root } from './engine.ts'

export const auditRecord = (id: string, kind: AuditKind, over: Partial<NewAudit> = {}): NewAudit => ({
  id: `au_${id}`,
  kind,
  intent_id: null,
  removal_id: null,
  project: 'default',
  scope: null,
  ref: null,
  actor: 'system',
  body: { said: `ä "quoted" \\ line\n${id}` },
  ...over,
})

export const append = (store: Store, ...records: NewAudit[]): Promise<void> => store.write((tx) => appendAudit(tx, records))

const whole: VerifyInput = { limit: 1_000_000 }
export const verify = (store: Store, input: Partial<VerifyInput> = {}): Promise<AuditVerificationView> =>
  verifyAudit({ store }, root, { ...whole, ...input }, new AbortController().signal)

/** `count` operator records, sealed. @returns the head */
export const chainOf = async (store: Store, count: number): Promise<ChainPoint> => {
  await append(store, ...Array.from({ length: count }, (_, i) => auditRecord(String(i + 1).padStart(6, '0'), 'operator')))
  await sealAll(store, 're_1')
  const { seq, hash } = await store.read(chainRow)
  return { seq, hash }
}

/** What somebody with the whole database in hand does: a new chain over what is there now, its own row included. */
export const resealAll = (store: Store): Promise<void> =>
  store.write(async (tx) => {
    const records = await sealedAfter(tx, 0, Number.MAX_SAFE_INTEGER, 1_000_000)
    const seals = sealsFor({ seq: 0, hash: '0'.repeat(64) }, records, sha256)
    await tx.db.updateTable('audit').set({ seq: null, hash: null }).execute()
    for (const { id, seq, hash } of seals) await tx.db.updateTable('audit').set({ seq, hash }).where('id', '=', id).execute()
    const last = seals.at(-1)
    await tx.db
      .updateTable('chain')
      .set({ seq: last?.seq ?? 0, hash: last?.hash ?? '0'.repeat(64) })
      .execute()
  })
