/**
 * Boxes as containers. A **box** is a container with a volume and a network of its own, and one member to the engine (leases R80): it goes whole, in a call
 * that may be repeated. Its first process is a shell script that is also its dead-man clock.
 *
 * - The network is made first, and its id is the box's; volume and container carry it. See `identity.ts`.
 * - Labels are the tags. They nominate, and never decide: what has them and was not made with network and volume of a box is reported and left alone.
 * - An Engine says who it is. "Not found" counts only if it is the one that the box was made on.
 *
 * Not in here: pulling images, publishing ports, Swarm. A box is a way to take back, not a sandbox against whoever may use the Engine.
 */
import { addressText } from '../../lib/docker/address.ts'
import { EngineUnreachable } from '../../lib/docker/errors.ts'
import type { InstallationId } from '../../model/ids.ts'
import { oneMember } from '../../model/topology.ts'
import type { Access } from '../../model/wire.ts'
import type { Provider, ResourceIdentity } from '../contract.ts'
import { type Api, createApis } from './api.ts'
import { moveClock } from './clock.ts'
import { type DockerConfig, addressOf, parseDockerConfig } from './config.ts'
import { createBox } from './create.ts'
import { checkEngine } from './doctor.ts'
import { findBoxes, listBoxes } from './list.ts'
import { type Located, locate } from './locate.ts'
import { foundOf } from './look.ts'
import { removeBox } from './remove.ts'
import { scopeNow } from './scope.ts'
import { clearBox, leftoversOf } from './wipe.ts'
import { engineLocation, errorText, ownerKind, providerName } from './words.ts'

export interface DockerProviderOptions {
  /** When given, a request of another installation is refused. */
  installation?: InstallationId
}

const access = ({ nativeId, facts }: ResourceIdentity, config: DockerConfig): Access => {
  const { container, folder = '/', user = '' } = facts
  if (container === undefined) return { kind: 'none', why: `${nativeId} has no container: it was never whole` }
  const { host, tlsCa: ca, tlsCert: cert, tlsKey: key } = config
  return {
    kind: 'docker',
    host,
    ...(ca !== null && cert !== null && key !== null ? { tls: { ca, cert, key } } : {}),
    container,
    folder,
    ...(user === '' ? {} : { user }),
  }
}

const manualRemoval = ({ immutableId, facts }: ResourceIdentity, config: DockerConfig): string => {
  const docker = `docker --host ${addressText(addressOf(config))}`
  return [
    ...(facts['container'] === undefined ? [] : [`${docker} rm --force --volumes ${facts['container']}`]),
    `${docker} network rm ${immutableId}`,
    ...(facts['volume'] === undefined ? [] : [`${docker} volume rm ${facts['volume']}`]),
  ].join('; ')
}

/** Why there is no box to do something with. */
const notThere = (located: Exclude<Located, { kind: 'box' }>): string =>
  located.kind === 'unknown' ? located.error : located.kind === 'absent' ? located.proof : located.why

export const createDockerProvider = ({ installation }: DockerProviderOptions = {}): Provider => {
  const apiAt = createApis()
  const open = (given: Record<string, unknown>): { api: Api; config: DockerConfig } => {
    const config = parseDockerConfig(given)
    return { api: apiAt(addressOf(config)), config }
  }
  return {
    name: providerName,
    ownerKind,
    visibilitySeconds: 10,
    createDeadlineSeconds: 60,
    callDeadlineSeconds: 30,
    locations: [engineLocation],
    kinds: [ownerKind],
    writesMac: true,
    topology: () => oneMember(ownerKind),

    async scope(given, { signal }) {
      try {
        const { scope, info } = await scopeNow(open(given).api, signal)
        return { kind: 'known', scope, description: `the Docker Engine on ${info.Name} (${info.ID})` }
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    parseConfig: (given) => ({ ...parseDockerConfig(given) }),

    async create(request, context) {
      if (context.signal.aborted) return { kind: 'rejected', code: 'aborted', message: 'the call was ended before anything was made' }
      if (installation !== undefined && request.installation !== installation)
        return {
          kind: 'rejected',
          code: 'installation_mismatch',
          message: `this provider makes boxes of installation ${installation} only`,
        }
      const { api, config } = open(request.config)
      const asked = await scopeNow(api, context.signal).catch((error: unknown) => {
        if (error instanceof EngineUnreachable || context.signal.aborted) return errorText(error)
        throw error
      })
      // The first question had no answer: nothing was asked for.
      if (typeof asked === 'string') return { kind: 'rejected', code: 'engine_unavailable', message: asked }
      return createBox(api, asked.scope, request, config, context)
    },
    async find(ref, given, { signal }) {
      try {
        return await findBoxes(open(given).api, ref, signal)
      } catch (error) {
        return { kind: 'incomplete', why: errorText(error) }
      }
    },
    async read(resource, given, { signal }) {
      try {
        const located = await locate(open(given).api, resource, signal)
        if (located.kind !== 'box') return located
        const found = foundOf(located.box, resource.scope)
        // Under the identity that was asked for: what has lost its container is known by what was recorded of it.
        return {
          kind: 'present',
          found: { ...found, resource: { ...found.resource, facts: { ...found.resource.facts, ...resource.facts } } },
          contradictions: located.contradictions,
        }
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    async remove(resource, given, { signal }) {
      if (signal.aborted) return { kind: 'retryLater', why: 'the call was ended before anything was done', afterSeconds: null }
      try {
        const { api, config } = open(given)
        const located = await locate(api, resource, signal)
        if (located.kind === 'absent') return { kind: 'gone', requestId: null }
        if (located.kind === 'replaced') return { kind: 'blocked', by: located.why }
        if (located.kind === 'unknown') return located
        return await removeBox(api, located.box, config.graceSeconds, signal)
      } catch (error) {
        return { kind: 'unknown', error: errorText(error) }
      }
    },
    list: (_locations, given, { signal }) => listBoxes(open(given).api, installation, signal),
    async rearm(resource, lifetimeSeconds, given, rearming) {
      const { api } = open(given)
      const located = await locate(api, resource, rearming.signal)
      if (located.kind !== 'box') throw new Error(`the clock of ${resource.nativeId} can't be moved: ${notThere(located)}`)
      await moveClock(api, located.box, lifetimeSeconds, rearming)
    },
    wipe: {
      async clear(resource, given, wiping) {
        try {
          const { api, config } = open(given)
          const located = await locate(api, resource, wiping.signal)
          return located.kind === 'box'
            ? await clearBox(api, located.box, config.graceSeconds, wiping)
            : { kind: 'failed', why: notThere(located) }
        } catch (error) {
          return { kind: 'failed', why: errorText(error) }
        }
      },
      async leftovers(resource, given, { signal }) {
        try {
          const { api } = open(given)
          const located = await locate(api, resource, signal)
          return located.kind === 'box' ? await leftoversOf(api, located.box, signal) : { kind: 'incomplete', why: notThere(located) }
        } catch (error) {
          return { kind: 'incomplete', why: errorText(error) }
        }
      },
    },
    manualRemoval: (resource, given) => manualRemoval(resource, parseDockerConfig(given)),
    access: (resource, given) => access(resource, parseDockerConfig(given)),
    async refreshAccess(resource, given, { signal }) {
      const located = await locate(open(given).api, resource, signal)
      const runs = located.kind === 'box' && located.box.container?.State === 'running'
      return {
        warning: runs ? null : `the box ${resource.nativeId} does not run any more: what ran in it has ended, and nothing can enter it`,
      }
    },
    doctor: (given, { signal }) => {
      const { api, config } = open(given)
      return checkEngine(api, config, signal)
    },
  }
}
