/** When the CLI writes, moves and drops claims. The files themselves are `store/claims.ts`, the decisions `model/claim.ts`. */
import { repositoryRoot } from '../../lib/git-root.ts'
import { claimTime, claimUse, type Claim } from '../../model/claim.ts'
import type { LeaseView } from '../../model/wire.ts'
import { ClaimChanged, openClaims, type ClaimStore } from '../../store/claims.ts'
import type { Cli } from './cli.ts'
import { CliError, messageOf, usageError } from './errors.ts'
import { removalIsFinal } from './leases.ts'
import type { Session } from './session.ts'

export interface ClaimKeeper {
  store: ClaimStore
  /** Before the create is sent: recovery authority only, until `ready` (leases R112). Exit 2 if the lease is claimed from elsewhere. */
  begin(
    leaseID: string,
    createAttemptID: string | null,
    request: { slug?: string; provider?: string; idleTimeoutSeconds?: number },
  ): Promise<Begun>
  /** What the lease turned out to be; moves the claim where the coordinator chose another id. */
  ready(claim: Claim, lease: LeaseView): Promise<Claim>
  /** Takes an existing lease into use from here; another repository's is refused with exit 2, or moved (leases R110). */
  use(lease: LeaseView, intent: 'use' | 'reclaim'): Promise<Claim>
  /** Nothing came of it. A claim that changed meanwhile stays. */
  drop(claim: Claim): Promise<void>
  /** Drops the claim of a lease whose removal is proved final; answers whether it is (leases R39, R111). */
  settle(lease: LeaseView): Promise<boolean>
}
export interface Begun {
  claim: Claim
  /** False: the claim was there before this command. */
  created: boolean
}

const refusal = (leaseID: string, owner: string): string =>
  `lease ${leaseID} is claimed from ${owner}. Use it from there, or move the claim here with "leasehold run --id ${leaseID} --reclaim -- COMMAND"`

export const keepClaims = (cli: Cli, { settings, client }: Session): ClaimKeeper => {
  const store = openClaims(settings.data.value)
  const here = repositoryRoot(cli.io.folder)
  const now = (): string => claimTime(cli.io.now())

  const read = (leaseID: string): Claim | null => {
    const found = store.read(leaseID)
    if (found.kind === 'bad') throw usageError(`the claim file of ${leaseID} ${found.problem}; look at ${store.folder}/${leaseID}.json`)
    return found.kind === 'claim' ? found.claim : null
  }
  const write = async (expected: Claim | null, next: Omit<Claim, 'revision'>): Promise<Claim> => {
    try {
      return await store.write(expected, next)
    } catch (error) {
      if (error instanceof ClaimChanged) throw usageError(error.message)
      throw new CliError(
        `the claim could not be written: ${messageOf(error)}. It goes into the data folder ${settings.data.value} (from ${settings.data.origin})`,
      )
    }
  }
  const factsOf = (lease: LeaseView) => ({
    leaseID: lease.id,
    slug: lease.slug,
    provider: lease.provider,
    cloudID: lease.cloudID,
    cloudImmutableID: lease.cloudImmutableID,
    providerScope: lease.scope,
    idleTimeoutSeconds: lease.idleTimeoutSeconds,
    labels: { ...lease.labels, state: lease.state === 'active' ? 'ready' : 'provisioning' },
    coordinator: client.url,
    createAttemptID: lease.createAttemptID,
  })
  const drop = async (claim: Claim): Promise<void> => {
    try {
      await store.remove(claim)
    } catch (error) {
      cli.warn(`the claim of ${claim.leaseID} stays: ${messageOf(error)}`)
    }
  }

  return {
    store,
    drop,
    async begin(leaseID, createAttemptID, request) {
      const existing = read(leaseID)
      if (existing) {
        const use = claimUse(existing, here, 'use')
        if (use.kind === 'refused') throw usageError(refusal(leaseID, use.owner))
        return { claim: existing, created: false }
      }
      const claim = await write(null, {
        leaseID,
        slug: request.slug ?? '',
        provider: request.provider ?? '',
        cloudID: null,
        cloudImmutableID: null,
        providerScope: null,
        repoRoot: here,
        claimedAt: now(),
        lastUsedAt: now(),
        idleTimeoutSeconds: request.idleTimeoutSeconds ?? 0,
        labels: { state: 'provisioning' },
        coordinator: client.url,
        createAttemptID,
      })
      return { claim, created: true }
    },
    async ready(claim, lease) {
      const next = { ...claim, ...factsOf(lease), lastUsedAt: now() }
      if (claim.leaseID === lease.id) return await write(claim, next)
      const moved = await write(null, next)
      await drop(claim)
      return moved
    },
    async use(lease, intent) {
      const existing = read(lease.id)
      if (!existing) return await write(null, { ...factsOf(lease), repoRoot: here, claimedAt: now(), lastUsedAt: now() })
      const use = claimUse(existing, here, intent)
      if (use.kind === 'refused') throw usageError(refusal(lease.id, use.owner))
      const place = use.kind === 'move' ? { repoRoot: here, claimedAt: now() } : {}
      return await write(existing, { ...existing, ...factsOf(lease), ...place, lastUsedAt: now() })
    },
    async settle(lease) {
      if (!(await removalIsFinal(client, lease))) return false
      const found = store.read(lease.id)
      // A claim on another coordinator's lease is not this one's to drop.
      if (found.kind === 'claim' && found.claim.coordinator === client.url) await drop(found.claim)
      return true
    },
  }
}

/** Drops the claims of those leases that are gone for good; looks only at leases that have a claim file. */
export const settleAll = async (keeper: ClaimKeeper, leases: readonly LeaseView[]): Promise<void> => {
  let claimed: Set<string>
  try {
    claimed = new Set(keeper.store.ids())
  } catch {
    return
  }
  for (const lease of leases) if (claimed.has(lease.id)) await keeper.settle(lease)
}
