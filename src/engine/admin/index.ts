/**
 * What operators and administrators do and read, one file per aggregate. Each function is one request: it checks the role, does its work in one
 * transaction with the event that tells of it, and answers a view of `model/wire.ts`. Leases as their holders see them are in `../leases`.
 */
export { readAudit } from './audit.ts'
export { verifyAudit, type VerifyInput } from './audit-verify.ts'
export { addBackend, deleteBackend, listBackends, type BackendInput } from './backends.ts'
export { defaultProject, firstStart, needsAdminToken } from './bootstrap.ts'
export { runDoctor } from './doctor.ts'
export { readFeed, type Feed, type FeedInput } from './events.ts'
export { createFeedWatch, type FeedWatch } from './feed-watch.ts'
export { listFindings } from './findings.ts'
export { addFreeze, listFreezes, removeFreeze } from './freezes.ts'
export { addHold, listHolds, removeHold, type HoldInput } from './holds.ts'
export { getInstance, listInstances } from './instances.ts'
export { auditLeases, type AuditInput } from './lease-audit.ts'
export { adminDelete, adminRelease } from './leases.ts'
export { letCountsPass, type LetPassInput } from './let-pass.ts'
export { acknowledgeAbsence, closeRemoval, getRemoval, listRemovals } from './removals.ts'
export { createProject, deleteProject, listProjects } from './projects.ts'
export { databaseTrouble, readStatus, type Running } from './status.ts'
export { dryRunSweep, getSweep, listSweeps, requestSweep, type SweepInput } from './sweeps.ts'
export { createToken, hashOfToken, listTokens, revokeToken, tokenPrefix, type TokenInput } from './tokens.ts'
export { approvePlan, getPlan, listPlans, makePlans } from './plans.ts'
