/** The life of a lease as its holder sees it. Each function is one request; the pipelines do the rest. */
export { createLease, putLease, type Created, type CreateInput } from './create.ts'
export { createHeartbeat } from './heartbeat.ts'
export type { HeartbeatInput } from './beat-apply.ts'
export { accessTo, getLease, listLeases, resolveLease, settledLease, type ListInput } from './find.ts'
export { cancelCreate, releaseLease, type CanceledCreate, type ReleaseInput } from './release.ts'
