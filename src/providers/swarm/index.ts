/**
 * The objects of a Swarm, as a manager shows them. Every call is one call of the Engine; outcomes are values. Not in here: what any of them is for.
 * Written for API 1.41; what its answers look like was measured there.
 */
import type { CallContext } from '../contract.ts'
import { type EngineCalls, failureOf } from './calls.ts'
import { type ChangingObjects, type Labels, type Objects, type SwarmObject, objectsOf } from './objects.ts'
import type { InfoOutcome, ListOutcome } from './outcomes.ts'

export type * from './calls.ts'
export type * from './objects.ts'
export type * from './outcomes.ts'

export interface FileSpec {
  Name: string
  Labels: Labels
  /** Base64; a secret's is never read back. */
  Data?: string
  Driver?: unknown
  Templating?: unknown
}
/** As it was read or is to be written: whoever gives it knows what is in it. */
export interface NamedSpec {
  Name: string
  Labels: Labels
  [key: string]: unknown
}
export interface NodeSpec {
  Availability: string
  Role: string
}
export interface SwarmNode extends SwarmObject<NodeSpec> {
  /** `ready`, `down`, `unknown`, `disconnected`. */
  state: string
  hostname: string
}
export interface SwarmTask {
  id: string
  serviceId: string
  nodeId: string
  state: string
  desiredState: string
  labels: Labels
}

export interface Swarm {
  info: (context: CallContext) => Promise<InfoOutcome>
  configs: ChangingObjects<FileSpec>
  secrets: ChangingObjects<FileSpec>
  services: ChangingObjects<NamedSpec>
  networks: Objects<NamedSpec>
  /** Those of the node that is asked, and of no other. */
  volumes: Objects<NamedSpec>
  nodes(context: CallContext): Promise<ListOutcome<SwarmNode>>
  tasks(wanted: { service?: string; label?: { key: string; value: string } }, context: CallContext): Promise<ListOutcome<SwarmTask>>
}

type Raw = Record<string, unknown>
const rawOf = (value: unknown): Raw => (typeof value === 'object' && value !== null ? (value as Raw) : {})
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const labelsOf = (value: unknown): Labels => rawOf(value) as Labels

/** What has an id: without one, or a name, the answer is no object at all. */
const named = <Spec>(object: SwarmObject<Spec>): SwarmObject<Spec> => {
  if (object.id === '') throw new Error('the Engine showed an object without an id')
  return object
}

const withSpec = <Spec>(value: unknown): SwarmObject<Spec> => {
  const raw = rawOf(value)
  const spec = rawOf(raw['Spec'])
  const version = rawOf(raw['Version'])['Index']
  if (typeof version !== 'number') throw new Error('the Engine showed an object without a version')
  return named({
    id: text(raw['ID']),
    name: text(spec['Name']),
    version,
    labels: labelsOf(spec['Labels']),
    createdAt: text(raw['CreatedAt']),
    updatedAt: text(raw['UpdatedAt']),
    spec: spec as Spec,
  })
}

/** Networks and volumes are shown without a spec of their own, and never change. */
const plain = (value: unknown): SwarmObject<NamedSpec> => {
  const raw = rawOf(value)
  const name = text(raw['Name'])
  const at = text(raw['Created'] ?? raw['CreatedAt'])
  return named({
    id: text(raw['Id'] ?? raw['Name']),
    name,
    version: null,
    labels: labelsOf(raw['Labels']),
    createdAt: at,
    updatedAt: at,
    spec: { ...raw, Name: name, Labels: labelsOf(raw['Labels']) },
  })
}

const nodeOf = (value: unknown): SwarmNode => {
  const raw = rawOf(value)
  const hostname = text(rawOf(raw['Description'])['Hostname'])
  return { ...withSpec<NodeSpec>(value), name: hostname, hostname, state: text(rawOf(raw['Status'])['State']) }
}

const taskOf = (value: unknown): SwarmTask => {
  const raw = rawOf(value)
  return {
    id: text(raw['ID']),
    serviceId: text(raw['ServiceID']),
    nodeId: text(raw['NodeID']),
    state: text(rawOf(raw['Status'])['State']),
    desiredState: text(raw['DesiredState']),
    labels: labelsOf(raw['Labels']),
  }
}

export const createSwarm = (engine: EngineCalls): Swarm => {
  const listed = async <T>(
    path: string,
    filters: string | undefined,
    signal: AbortSignal,
    read: (raw: unknown) => T,
  ): Promise<ListOutcome<T>> => {
    try {
      const { body } = await engine.call<unknown[]>({ method: 'GET', path, query: { filters }, signal })
      return { kind: 'complete', objects: body.map((one) => read(one)) }
    } catch (error) {
      return { kind: 'incomplete', why: failureOf(error).text }
    }
  }
  const files = (path: string): ChangingObjects<FileSpec> => objectsOf(engine, { path, createPath: '/create', read: withSpec<FileSpec> })
  return {
    async info({ signal }) {
      try {
        const { body } = await engine.call<Raw>({ method: 'GET', path: '/info', signal })
        const swarm = rawOf(body['Swarm'])
        const clusterId = text(rawOf(swarm['Cluster'])['ID'])
        if (swarm['ControlAvailable'] !== true || clusterId === '')
          return { kind: 'no-manager', why: `the Engine is no manager of a Swarm (it is ${text(swarm['LocalNodeState']) || 'in none'})` }
        const { Nodes: nodes, Managers: managers } = swarm
        // A count that can't be read is not "one node" (prune R46).
        if (typeof nodes !== 'number' || typeof managers !== 'number')
          return { kind: 'unknown', error: 'the Swarm does not say how many nodes it has' }
        return { kind: 'manager', clusterId, nodeId: text(swarm['NodeID']), nodes, managers }
      } catch (error) {
        return { kind: 'unknown', error: failureOf(error).text }
      }
    },
    configs: files('/configs'),
    secrets: files('/secrets'),
    services: objectsOf(engine, { path: '/services', createPath: '/create', read: withSpec<NamedSpec> }),
    networks: objectsOf(engine, { path: '/networks', createPath: '/create', read: plain }),
    volumes: objectsOf(engine, {
      path: '/volumes',
      createPath: '/create',
      read: plain,
      listed: (body) => rawOf(body)['Volumes'] ?? (Object.hasOwn(rawOf(body), 'Volumes') ? [] : body),
    }),
    nodes: ({ signal }) => listed('/nodes', undefined, signal, nodeOf),
    tasks({ service, label }, { signal }) {
      if (service === '' || label?.value === '') throw new Error('an empty filter would select everything')
      const wanted = { ...(service !== undefined && { service: [service] }), ...(label && { label: [`${label.key}=${label.value}`] }) }
      return listed('/tasks', Object.keys(wanted).length > 0 ? JSON.stringify(wanted) : undefined, signal, taskOf)
    },
  }
}
