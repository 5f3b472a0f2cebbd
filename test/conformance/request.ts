/** What tests of providers ask with. */
import { hex, letterFirst } from '../../src/lib/ids.ts'
import type { InstallationId, Ref } from '../../src/model/ids.ts'
import type { CallContext, CreateOutcome, CreateRequest, Provider, RearmContext, ResourceIdentity } from '../../src/providers/contract.ts'

export const context = (milliseconds = 30_000): CallContext => ({ signal: AbortSignal.timeout(milliseconds) })

/** As whoever has the box asks for its clock to be moved. @param order grows with each holder */
export const rearming = (order = 1, stands = true): RearmContext => ({ ...context(), stands: () => stands, order })

export const createRequest = (
  provider: Provider,
  config: Record<string, unknown>,
  changes: Partial<CreateRequest> = {},
): CreateRequest => ({
  ref: letterFirst(12) as Ref,
  installation: letterFirst(8) as InstallationId,
  attemptNumber: 1,
  attemptToken: hex(16),
  mac: `1-key000-3-${hex(20)}`,
  leaseId: null,
  name: 'calm-otter',
  project: 'default',
  location: provider.locations[0] as string,
  labels: { leasehold: 'true' },
  secretEnvironment: {},
  maximumLifetimeSeconds: 600,
  config,
  ...changes,
})

/** The resource of a create that must have succeeded. */
export const created = (outcome: CreateOutcome): ResourceIdentity => {
  if (outcome.kind !== 'created') throw new Error(`not created: ${JSON.stringify(outcome)}`)
  return outcome.resource
}
