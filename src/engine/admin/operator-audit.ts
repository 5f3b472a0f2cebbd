/** What people did to the safety switches is kept for ever, beside the deletions themselves (I7). */
import { uuidv7Hex } from '../../lib/ids.ts'
import type { Ref, RemovalId, ScopeId } from '../../model/ids.ts'
import { appendAudit } from '../../store/audit.ts'
import type { Tx } from '../../store/store.ts'
import type { Actor } from '../actor.ts'

/** @param body without secrets: it is never deleted */
export const auditOperator = (
  tx: Tx,
  actor: Actor,
  about: { project: string | null; scope: string | null; ref?: Ref; removalId?: RemovalId },
  body: { action: string } & Record<string, unknown>,
): Promise<void> =>
  appendAudit(tx, [
    {
      id: `au_${uuidv7Hex(tx.now)}`,
      kind: 'operator',
      intent_id: null,
      removal_id: about.removalId ?? null,
      project: about.project,
      scope: about.scope as ScopeId | null,
      ref: about.ref ?? null,
      actor: actor.name,
      body,
    },
  ])
