/**
 * Real boxes on this machine. A **box** is a PID namespace with a folder of its own: what runs inside can't leave it, whatever it does to
 * its session, its parent or its environment, and when its first process goes, the kernel kills all of it. That first process is a
 * shell script that is also the box's dead-man clock, so a box ends at its maximum lifetime when nobody is left to end it.
 *
 * - The facts fixed at creation are the boot, the namespace's inode, and pid and start time of the first process, with the attempt's token
 *   in `box.json`. The environment variables are the tags: they nominate, and never decide.
 * - A process outside every box that carries a ref is reported and never signalled.
 * - Where no namespace can be made, a box is the sessions that were entered through it (`mode: session`): what leaves them is report-only.
 *
 * Not in here: limits on memory, files or network. A box is a way to take back, not a sandbox: what runs in it runs as the coordinator's user.
 */
import { machineId } from '../../lib/host.ts'
import type { InstallationId, ScopeId } from '../../model/ids.ts'
import { oneMember } from '../../model/topology.ts'
import type { Access } from '../../model/wire.ts'
import type { Provider, ResourceIdentity } from '../contract.ts'
import { chooseMode, createNamespaceProbe, unsupportedHere } from './capability.ts'
import { type ProcessConfig, parseProcessConfig } from './config.ts'
import { moveClock } from './clock.ts'
import { createBox } from './create.ts'
import { checkHost } from './doctor.ts'
import { boxFolder } from './folder.ts'
import { parseImmutableId } from './identity.ts'
import { initStateOf } from './inspect.ts'
import { listBoxResources } from './list.ts'
import { locate } from './locate.ts'
import { findBoxes, readBoxOf } from './look.ts'
import { removeBox } from './remove.ts'
import { clearBox, leftoversOf } from './wipe.ts'
import { errorText, localLocation, ownerKind, providerName } from './words.ts'

export interface ProcessProviderOptions {
  /** Boxes live in `<dataFolder>/boxes`. */
  dataFolder: string
  /** When given, a request of another installation is refused. */
  installation?: InstallationId
}

const scopeHere = (): ScopeId => `machine:${machineId()}` as ScopeId
const configOf = (config: Record<string, unknown>): ProcessConfig => parseProcessConfig(config)

const access = (dataFolder: string, resource: ResourceIdentity): Access => {
  const identity = parseImmutableId(resource.immutableId)
  if (identity?.kind !== 'started') throw new Error(`${resource.nativeId} has not started, so it can't be entered`)
  const { boot, inode, pid } = identity.init
  const common = { folder: boxFolder(dataFolder, resource.nativeId), machineID: resource.scope.replace(/^machine:/, ''), bootID: boot }
  if (inode === null) return { kind: 'session', ...common }
  return { kind: 'namespace', ...common, pid, pidNamespaceInode: inode, userNamespace: resource.facts['userNamespace'] === 'true' }
}

/** A pid alone is no identity, so the start time stands beside it. */
const manualRemoval = (dataFolder: string, resource: ResourceIdentity): string => {
  const identity = parseImmutableId(resource.immutableId)
  const folder = `delete its folder ${boxFolder(dataFolder, resource.nativeId)}`
  if (identity?.kind !== 'started') return `on ${resource.scope}, ${folder}`
  const { pid, start } = identity.init
  return `on ${resource.scope}, kill -KILL ${pid} if that process started at tick ${start} of this boot, and ${folder}`
}

/** Boxes as PID namespaces of this machine, or as sessions where there can be none. */
export const createProcessProvider = ({ dataFolder, installation }: ProcessProviderOptions): Provider => {
  const namespaces = createNamespaceProbe()
  return {
    name: providerName,
    ownerKind,
    visibilitySeconds: 0,
    createDeadlineSeconds: 60,
    callDeadlineSeconds: 30,
    locations: [localLocation],
    kinds: [ownerKind],
    writesMac: true,
    // A box goes whole in one call, which may be repeated: a crash in it needs nobody (leases R80).
    topology: () => oneMember(ownerKind),

    async scope() {
      try {
        const id = machineId()
        return { kind: 'known', scope: `machine:${id}` as ScopeId, description: `this machine (${id})` }
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    parseConfig: (config) => ({ ...parseProcessConfig(config) }),

    async create(request, context) {
      const unsupported = unsupportedHere()
      const choice =
        unsupported === null ? await chooseMode(configOf(request.config), namespaces) : ({ kind: 'unsupported', why: unsupported } as const)
      if (choice.kind === 'unsupported') return { kind: 'rejected', code: 'provider_unsupported', message: choice.why }
      if (installation !== undefined && request.installation !== installation) {
        return {
          kind: 'rejected',
          code: 'installation_mismatch',
          message: `this provider makes boxes of installation ${installation} only`,
        }
      }
      return createBox(request, { dataFolder, scope: scopeHere(), choice }, context)
    },
    async find(ref, _config, { signal }) {
      try {
        return await findBoxes(dataFolder, scopeHere(), ref, signal)
      } catch (error) {
        return { kind: 'incomplete', why: errorText(error) }
      }
    },
    async read(resource, _config, { signal }) {
      try {
        return await readBoxOf(dataFolder, scopeHere(), resource, signal)
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    async remove(resource, config, { signal }) {
      if (signal.aborted) return { kind: 'retryLater', why: 'the call was ended before anything was done', afterSeconds: null }
      try {
        const located = await locate(dataFolder, { scope: scopeHere() }, resource)
        if (located.kind === 'absent') return { kind: 'gone', requestId: null }
        if (located.kind === 'replaced') return { kind: 'blocked', by: located.why }
        if (located.kind === 'unknown') return located
        return await removeBox(dataFolder, located.box, configOf(config).graceSeconds, signal)
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    list: (_locations, _config, { signal }) => listBoxResources(dataFolder, scopeHere(), installation, signal),
    async rearm(resource, lifetimeSeconds, _config, context) {
      const located = await locate(dataFolder, { scope: scopeHere() }, resource)
      if (located.kind !== 'box' || located.box.init === null || initStateOf(located.box) !== 'alive') {
        throw new Error(`the clock of ${resource.nativeId} can't be moved: the box does not run`)
      }
      moveClock(located.box, lifetimeSeconds, context)
      // The clock looks again; without this it would do so within a minute.
      if (initStateOf(located.box) === 'alive') process.kill(located.box.init.pid, 'SIGHUP')
    },
    wipe: {
      async clear(resource, config, wiping) {
        try {
          const located = await locate(dataFolder, { scope: scopeHere() }, resource)
          if (located.kind !== 'box' || !located.folder) return { kind: 'failed', why: `${resource.nativeId} is not there as it was made` }
          return await clearBox(located.box, configOf(config).graceSeconds, wiping)
        } catch (error) {
          return { kind: 'failed', why: errorText(error) }
        }
      },
      async leftovers(resource, _config, { signal }) {
        try {
          const located = await locate(dataFolder, { scope: scopeHere() }, resource)
          if (located.kind !== 'box' || !located.folder)
            return { kind: 'incomplete', why: `${resource.nativeId} is not there as it was made` }
          return await leftoversOf(located.box, signal)
        } catch (error) {
          return { kind: 'incomplete', why: errorText(error) }
        }
      },
    },
    manualRemoval: (resource) => manualRemoval(dataFolder, resource),
    access: (resource) => access(dataFolder, resource),
    async refreshAccess(resource) {
      const located = await locate(dataFolder, { scope: scopeHere() }, resource)
      const runs = located.kind === 'box' && located.box.init !== null && initStateOf(located.box) === 'alive'
      return {
        warning: runs ? null : `the box ${resource.nativeId} does not run any more: what ran in it has ended, and nothing can enter it`,
      }
    },
    doctor: (config, { signal }) => checkHost(dataFolder, configOf(config), namespaces, signal),
  }
}
