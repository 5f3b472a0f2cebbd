/**
 * A cloud that lies. It behaves as real ones do at their worst, on demand and nowhere but in an SQLite file, so that anyone can see what Leasehold
 * does before trusting it with an account: late visibility, pages that fail or repeat, creates that succeed and answer an error, deletions that are
 * accepted and never happen, kinds that may not be listed, calls that hang, copied tags.
 *
 * - A **machine** is an owner; a **disk**, a **nic** and an **ip** are made with it and stand on it. What stands on something can't be removed before it.
 * - The tags nominate. The request that made a resource is fixed on it as its client token, which no copy has: the second fact.
 * - An id is never used again; a name may be.
 * - The clock is given: nothing waits but a call that hangs or is slow, and how that waits is given too.
 *
 * Not in here: anything that runs. A simulated machine can't be entered.
 */
import type { ScopeId } from '../../model/ids.ts'
import type { Provider } from '../contract.ts'
import { type Client, type Sleep, realSleep } from './api.ts'
import { type SimulatedConfig, parseSimulatedConfig, storedSimulatedConfig } from './config.ts'
import { createGroup } from './create.ts'
import { checkCloud } from './doctor.ts'
import { scopeOf } from './found.ts'
import { inspectGroup, topologyOf } from './inspect.ts'
import { findMachines, listResources, mayListCell } from './list.ts'
import { createOpener } from './opener.ts'
import { readResource, removeResource } from './read.ts'
import { clearMachine, leftoversOf } from './wipe.ts'
import { defaultLocations, isKind, kinds, ownerKind, providerName } from './words.ts'

export interface SimulatedProviderOptions {
  /** The account is `<dataFolder>/simulated.db` where a backend names no other file. */
  dataFolder: string
  /** ms; the account's own by default. */
  now?: () => number
  /** How hanging and slow calls wait. */
  sleep?: Sleep
}

const callDeadlineSeconds = 30

const errorText = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export const createSimulatedProvider = ({ dataFolder, now, sleep = realSleep }: SimulatedProviderOptions): Provider => {
  const opener = createOpener(now)
  // One provider stands for all of its backends, so it says what the slowest of those that it has met needs.
  const slowest = { visibilitySeconds: 0, createDeadlineSeconds: 0 }
  const configOf = (given: unknown): SimulatedConfig => {
    const config = parseSimulatedConfig(given, dataFolder)
    slowest.visibilitySeconds = Math.max(slowest.visibilitySeconds, config.visibilitySeconds)
    slowest.createDeadlineSeconds = Math.max(slowest.createDeadlineSeconds, config.createDeadlineSeconds)
    return config
  }
  /** @throws when the account can't be opened */
  const open = (given: Record<string, unknown>): { config: SimulatedConfig; client: Client; scope: ScopeId } => {
    const config = configOf(given)
    const cloud = opener.at(config.path)
    return { config, client: { cloud, sleep, patienceMs: callDeadlineSeconds * 1000 }, scope: scopeOf(cloud.account()) }
  }
  return {
    name: providerName,
    ownerKind,
    kinds,
    locations: defaultLocations,
    locationsOf: (given) => configOf(given).locations,
    callDeadlineSeconds,
    writesMac: true,
    get visibilitySeconds() {
      return slowest.visibilitySeconds
    },
    get createDeadlineSeconds() {
      return slowest.createDeadlineSeconds || 60
    },
    parseConfig(given) {
      configOf(given)
      return { ...storedSimulatedConfig(given, dataFolder) }
    },

    async scope(given) {
      try {
        const { scope, config } = open(given)
        return { kind: 'known', scope, description: `a simulated account (${config.path})` }
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    async create(request, { signal }) {
      let opened: ReturnType<typeof open>
      try {
        opened = open(request.config)
      } catch (error) {
        return { kind: 'rejected', code: 'account_unavailable', message: errorText(error) }
      }
      return createGroup(opened.client, opened.scope, request, opened.config, signal)
    },
    async find(ref, given, { signal }) {
      try {
        const { client, scope, config } = open(given)
        return await findMachines(client, scope, ref, config, signal)
      } catch (error) {
        return { kind: 'incomplete', why: errorText(error) }
      }
    },
    async read(resource, given, { signal }) {
      try {
        const { client, scope } = open(given)
        return await readResource(client, scope, resource, signal)
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    async remove(resource, given, { signal }, precondition) {
      try {
        const { client, scope, config } = open(given)
        return await removeResource(client, scope, resource, config, signal, precondition)
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    topology: (given) => topologyOf(configOf(given)),
    async inspect(group, given, { signal }) {
      try {
        const { client, scope, config } = open(given)
        return await inspectGroup(client, scope, group, config, signal)
      } catch (error) {
        return { kind: 'incomplete', why: errorText(error) }
      }
    },
    async *list(locations, given, { signal }) {
      const { client, scope, config } = open(given)
      yield* listResources(client, scope, locations, config, signal)
    },
    async mayList(location, kind, given, { signal }) {
      return isKind(kind) && mayListCell(open(given).client, { location, kind }, signal)
    },
    async rearm(resource, lifetimeSeconds, given, { signal, stands }) {
      const { client, scope } = open(given)
      // The cloud answers in this very turn: nothing comes between.
      signal.throwIfAborted()
      if (!stands()) throw new Error(`the clock of ${resource.nativeId} was not moved: whoever asked may have lost it meanwhile`)
      if (resource.scope !== scope || !client.cloud.rearm(resource.immutableId, lifetimeSeconds * 1000))
        throw new Error(`the clock of ${resource.nativeId} can't be moved: the machine does not run`)
    },
    wipe: {
      async clear(resource, given, wiping) {
        try {
          const { client, scope } = open(given)
          return await clearMachine(client, scope, resource, wiping)
        } catch (error) {
          return { kind: 'failed', why: errorText(error) }
        }
      },
      async leftovers(resource, given, { signal }) {
        try {
          const { client, scope } = open(given)
          return await leftoversOf(client, scope, resource, signal)
        } catch (error) {
          return { kind: 'incomplete', why: errorText(error) }
        }
      },
    },
    manualRemoval: (resource) => `leasehold simulate remove ${resource.immutableId}`,
    access: (resource) => ({ kind: 'none', why: `${resource.nativeId} is a simulated machine: nothing runs on it, so no command can` }),
    doctor: async (given) => {
      const { path } = configOf(given)
      return checkCloud(() => opener.at(path), path)
    },
  }
}
