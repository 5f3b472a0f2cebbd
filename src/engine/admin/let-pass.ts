/** A person lets implausible counts pass: of one backend, for its next sweep, and exactly the counts that were shown (decisions, guard on counts). */
import { countsText, type Expectation, type LetPass } from '../../model/inventory.ts'
import { LeaseholdError } from '../../model/errors.ts'
import { appendEvents } from '../../store/events.ts'
import { findBackend, listBackends } from '../../store/backends.ts'
import { findingsAbout } from '../../store/findings.ts'
import { projectFor, requireOperator, type Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { refuseBackend } from '../known.ts'
import { event } from '../record.ts'
import { auditOperator } from './operator-audit.ts'

export interface LetPassInput {
  project?: string
  backend: string
  reason: string
}

/**
 * The pass is used up by the next listing, whatever that one counts.
 * @throws LeaseholdError forbidden, bad_request, not_found when no implausible counts stand there
 */
export const letCountsPass = async (context: EngineContext, actor: Actor, input: LetPassInput): Promise<void> => {
  requireOperator(actor)
  const reason = input.reason.trim()
  if (reason === '') throw new LeaseholdError('bad_request', 'letPass: say why, for those who ask what was deleted afterwards')
  const project = projectFor(actor, input.project)
  await context.store.write(async (tx) => {
    const backend = await findBackend(tx, project, input.backend)
    if (!backend) return refuseBackend(project, input.backend, await listBackends(tx, project))
    const id = `${project}/${backend.name}`
    const finding = (await findingsAbout(tx, 'backend', id)).findLast((row) => row.code === 'counts-implausible' && row.state === 'open')
    if (!finding)
      throw new LeaseholdError(
        'not_found',
        `no implausible counts stand on backend "${backend.name}", so there is nothing to let pass; "leasehold sweeps" shows the guard of each sweep`,
      )
    const counts = JSON.parse(finding.evidence) as Expectation
    const pass: LetPass = { by: actor.name, reason, numbers: countsText(counts) }
    await tx.db
      .updateTable('cleanups')
      .set({ let_pass: JSON.stringify(pass) })
      .where('id', '=', id)
      .execute()
    const targets = [
      { type: 'backend', id, name: backend.name },
      { type: 'finding', id: finding.id, name: finding.code },
    ]
    await appendEvents(tx, [event(tx, 'sweep.let-pass', { why: finding.message, reason }, { project, actor: actor.name, targets })])
    await auditOperator(
      tx,
      actor,
      { project, scope: backend.scope },
      { action: 'let-counts-pass', backend: backend.name, finding: finding.id, counts, reason },
    )
  })
}
