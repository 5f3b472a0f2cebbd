/**
 * A Docker Engine that manages a Swarm, as far as its API was measured (20.10.24, API 1.41): names unique without case, 64 characters, versions and their
 * compare-and-swap, prefix filters, objects in use, and each refusal in the Engine's own words. Records every call, and can fail, lose an answer, or end
 * the world at any of them. What it answers is held against a real Engine by `test/providers/swarm/engine.test.ts`.
 */
import { randomUUID } from 'node:crypto'
import type { EngineCalls, EngineRequest } from '../../src/providers/swarm/index.ts'

export class EngineSaysNo extends Error {
  readonly status: number
  readonly answer: string
  constructor(status: number, answer: string) {
    super(answer)
    this.status = status
    this.answer = answer
  }
}
/** The process that made the call is dead. */
export class KilledError extends Error {}

type Kind = 'config' | 'secret' | 'service' | 'network' | 'volume'
interface Stored {
  id: string
  kind: Kind
  index: number
  createdAt: string
  updatedAt: string
  spec: Record<string, unknown> & { Name: string; Labels?: Record<string, string> | null }
}

/** What happens at a call: the process dies before or after it, its answer is lost, or the Engine refuses. */
export type Fault = 'die-before' | 'die-after' | 'lose-answer' | 'refuse'

const kinds: Record<string, Kind> = { configs: 'config', secrets: 'secret', services: 'service', networks: 'network', volumes: 'volume' }
const rpc = (code: string, text: string): string => `rpc error: code = ${code} desc = ${text}`
const configName = /^[a-zA-Z0-9]+(?:[a-zA-Z0-9-_.]*[a-zA-Z0-9])?$/

export class FakeSwarm {
  readonly clusterId = randomUUID().replaceAll('-', '').slice(0, 25)
  /** `POST /configs/create`, in order. */
  readonly calls: string[] = []
  nodes = 1
  /** ms: what the Swarm's clock says. */
  clock = Date.parse('2026-11-30T12:00:00Z')
  #objects = new Map<string, Stored>()
  #index = 10
  #ids = 0
  #fault: { at: number; fault: Fault } | null = null
  #dead = false

  /** At the `at`th call from now on, from 1. */
  plan(fault: Fault, at: number): void {
    this.#fault = { at: this.calls.length + at, fault }
  }
  get dead(): boolean {
    return this.#dead
  }
  /** The next process. */
  revive(): void {
    this.#dead = false
    this.#fault = null
  }

  objects(kind: Kind): { id: string; name: string; labels: Record<string, string>; version: number; spec: Stored['spec'] }[] {
    return [...this.#objects.values()]
      .filter((one) => one.kind === kind)
      .map((one) => ({ id: one.id, name: one.spec.Name, labels: one.spec.Labels ?? {}, version: one.index, spec: one.spec }))
  }

  get engine(): EngineCalls {
    return { call: <T>(request: EngineRequest) => this.#call(request) as Promise<{ status: number; body: T }> }
  }

  async #call(request: EngineRequest): Promise<{ status: number; body: unknown }> {
    request.signal.throwIfAborted()
    // Others have their turn at every call.
    await Promise.resolve()
    if (this.#dead) throw new KilledError('dead')
    this.calls.push(`${request.method} ${request.path}`)
    const fault = this.#fault?.at === this.calls.length ? this.#fault.fault : null
    if (fault === 'die-before') this.#dead = true
    if (this.#dead) throw new KilledError('dead')
    if (fault === 'refuse') throw new EngineSaysNo(500, rpc('DeadlineExceeded', 'context deadline exceeded'))
    const answer = this.#answer(request)
    if (fault === 'die-after') {
      this.#dead = true
      throw new KilledError('dead')
    }
    if (fault === 'lose-answer') throw new Error('socket hang up')
    return structuredClone(answer)
  }

  #answer({ method, path, query, body }: EngineRequest): { status: number; body: unknown } {
    const [, place = '', which, action] = path.split('/').map((part) => decodeURIComponent(part))
    const kind = kinds[place]
    const filters = JSON.parse(String(query?.['filters'] ?? '{}')) as { label?: string[]; name?: string[] }
    if (path === '/info') return { status: 200, body: { Swarm: this.#info() } }
    if (path === '/nodes') return { status: 200, body: [] }
    if (path === '/tasks') return { status: 200, body: [] }
    if (kind === undefined) throw new EngineSaysNo(404, 'page not found')
    if (method === 'GET' && which === undefined) {
      const shown = [...this.#objects.values()]
        .filter((one) => one.kind === kind && this.#passes(one, filters))
        .map((one) => this.#show(one))
      return { status: 200, body: kind === 'volume' ? { Volumes: shown.length > 0 ? shown : null, Warnings: null } : shown }
    }
    if (method === 'POST' && which === 'create') return { status: 201, body: this.#create(kind, body as Stored['spec']) }
    const found = this.#find(kind, which ?? '')
    if (found === undefined) throw new EngineSaysNo(404, kind === 'volume' ? `get ${which}: no such volume` : `${kind} ${which} not found`)
    if (method === 'GET') return { status: 200, body: this.#show(found) }
    if (method === 'POST' && action === 'update')
      return { status: 200, body: this.#update(found, query?.['version'], body as Stored['spec']) }
    if (method === 'DELETE') return { status: 204, body: this.#remove(found) }
    throw new EngineSaysNo(404, 'page not found')
  }

  #info(): unknown {
    return {
      NodeID: 'node1',
      LocalNodeState: 'active',
      ControlAvailable: true,
      Nodes: this.nodes,
      Managers: 1,
      Cluster: { ID: this.clusterId },
    }
  }

  /** An empty value matches every object that has the key; the same key twice, and the last counts (docker facts 3.2). */
  #passes(one: Stored, { label = [], name = [] }: { label?: string[]; name?: string[] }): boolean {
    const labels = one.spec.Labels ?? {}
    const wanted = new Map(label.map((text): [string, string | undefined] => [text.split('=', 1)[0] ?? '', /=(.*)/s.exec(text)?.[1]]))
    const anyValue = one.kind !== 'network' && one.kind !== 'volume'
    for (const [key, value] of wanted) {
      const has = Object.hasOwn(labels, key)
      if (!has || (value !== undefined && !(value === '' && anyValue) && labels[key] !== value)) return false
    }
    if (name.length === 0) return true
    const own = one.spec.Name.toLowerCase()
    return name.some((text) =>
      one.kind === 'network' ? one.spec.Name === text : one.kind === 'volume' ? own.includes(text) : own.startsWith(text.toLowerCase()),
    )
  }

  #find(kind: Kind, which: string): Stored | undefined {
    const all = [...this.#objects.values()].filter((one) => one.kind === kind)
    return all.find((one) => one.id === which) ?? all.find((one) => one.spec.Name === which)
  }

  #show(one: Stored): unknown {
    const { Data: data, ...rest } = one.spec
    if (one.kind === 'network') return { ...rest, Id: one.id, Created: one.createdAt, Scope: 'swarm' }
    if (one.kind === 'volume') return { ...rest, CreatedAt: one.createdAt, Scope: 'local', Driver: 'local' }
    const spec = one.kind === 'config' ? { ...rest, Data: data } : rest
    return { ID: one.id, Version: { Index: one.index }, CreatedAt: one.createdAt, UpdatedAt: one.updatedAt, Spec: spec }
  }

  #create(kind: Kind, spec: Stored['spec']): unknown {
    const name = spec.Name
    if (kind === 'volume') {
      const there = this.#find(kind, name)
      // Made already is no error, and its labels stay as they are (docker facts 3.1).
      return { Name: (there ?? this.#store(kind, name, spec)).spec.Name }
    }
    if (kind === 'config' || kind === 'secret') this.#checkFile(kind, spec)
    if (kind === 'service' && name.length > 63) throw new EngineSaysNo(400, rpc('InvalidArgument', 'name must be 63 characters or fewer'))
    const twin = [...this.#objects.values()].find((one) => one.kind === kind && one.spec.Name.toLowerCase() === name.toLowerCase())
    if (twin) {
      if (kind === 'service')
        throw new EngineSaysNo(409, rpc('AlreadyExists', `name conflicts with an existing object: service ${name} already exists`))
      if (kind === 'network' && twin.spec.Name !== name)
        throw new EngineSaysNo(500, rpc('Unknown', 'name conflicts with an existing object'))
      if (kind === 'network') throw new EngineSaysNo(409, `network with name ${name} already exists`)
      throw new EngineSaysNo(409, rpc('AlreadyExists', `${kind} ${name} already exists`))
    }
    this.#ids++
    const id = `${kind.slice(0, 3)}${String(this.#ids).padStart(22, '0')}`
    this.#store(kind, id, spec)
    return kind === 'network' ? { Id: id, Warning: '' } : { ID: id }
  }

  #store(kind: Kind, id: string, spec: Stored['spec']): Stored {
    this.#index++
    const at = new Date(this.clock).toISOString()
    const stored: Stored = { id, kind, index: this.#index, createdAt: at, updatedAt: at, spec: structuredClone(spec) }
    this.#objects.set(`${kind}/${id}`, stored)
    return stored
  }

  #checkFile(kind: 'config' | 'secret', spec: Stored['spec']): void {
    if (!configName.test(spec.Name) || spec.Name.length > 64)
      throw new EngineSaysNo(
        400,
        rpc(
          'InvalidArgument',
          'invalid name, only 64 [a-zA-Z0-9-_.] characters allowed, and the start and end character must be [a-zA-Z0-9]',
        ),
      )
    const size = Buffer.from(typeof spec['Data'] === 'string' ? spec['Data'] : '', 'base64').byteLength
    const most = kind === 'config' ? 1_024_000 : 512_000
    if (size === 0 || size >= most)
      throw new EngineSaysNo(400, rpc('InvalidArgument', `${kind} data must be larger than 0 and less than ${most} bytes`))
  }

  #update(found: Stored, version: unknown, spec: Stored['spec']): null {
    if (found.kind === 'network' || found.kind === 'volume') throw new EngineSaysNo(404, 'page not found')
    if (version === undefined) throw new EngineSaysNo(400, `invalid ${found.kind} version`)
    if (found.kind !== 'service') {
      const { Labels: _labels, Data: data, ...rest } = spec
      const same =
        (data === undefined || data === found.spec['Data']) && Object.entries(rest).every(([key, value]) => found.spec[key] === value)
      if (!same) throw new EngineSaysNo(400, rpc('InvalidArgument', 'only updates to Labels are allowed'))
    }
    if (Number(version) !== found.index) throw new EngineSaysNo(500, rpc('Unknown', 'update out of sequence'))
    this.#index++
    found.index = this.#index
    found.updatedAt = new Date(this.clock).toISOString()
    found.spec = found.kind === 'service' ? structuredClone(spec) : { ...found.spec, Labels: structuredClone(spec.Labels ?? {}) }
    return null
  }

  #remove(found: Stored): null {
    const users = this.objects('service').filter(({ spec }) => JSON.stringify(spec).includes(`"${found.id}"`))
    const [user] = users
    if (user && (found.kind === 'config' || found.kind === 'secret'))
      throw new EngineSaysNo(
        400,
        rpc('InvalidArgument', `${found.kind} '${found.spec.Name}' is in use by the following service: ${user.name}`),
      )
    if (user && found.kind === 'network')
      throw new EngineSaysNo(400, rpc('FailedPrecondition', `network ${found.id} is in use by service ${user.id}`))
    this.#objects.delete(`${found.kind}/${found.id}`)
    return null
  }
}
