/** The Engine's calls that this provider makes, and what it reads in their answers. Not-found counts only where it is said of that very object (leases R86). */
import type { EngineAddress } from '../../lib/docker/address.ts'
import { type EngineClient, createEngineClient, filters, segment } from '../../lib/docker/client.ts'
import { isStatus } from '../../lib/docker/errors.ts'

export type Labels = Readonly<Record<string, string>>

export interface ListedContainer {
  Id: string
  Names: string[] | null
  /** Unix seconds. */
  Created: number
  Labels: Labels | null
  State: string
  HostConfig: { NetworkMode: string }
  Mounts: { Type: string; Name?: string; Destination: string }[] | null
}
export interface Container {
  Id: string
  Name: string
  State: { Status: string; Running: boolean; Pid: number }
  Config: { Labels: Labels | null }
  HostConfig: { NetworkMode: string; Tmpfs?: Record<string, string> | null }
  Mounts: { Type: string; Name?: string; Destination: string }[] | null
}
export interface Network {
  Id: string
  Name: string
  Created: string
  Labels: Labels | null
}
export interface Volume {
  Name: string
  Labels: Labels | null
}
export interface EngineInfo {
  ID: string
  Name: string
  OSType: string
  ServerVersion: string
  DockerRootDir: string
  Driver: string
}
export interface Image {
  Id: string
  Os: string
  Config: { User?: string } | null
}

const saysNotFound = /no such (container|volume|image|network)|(network|volume|image) .*not found/i

/** A 404 of a path or a proxy proves nothing of the object. */
export const isNotFound = (error: unknown): boolean => isStatus(error, 404) && saysNotFound.test(error.answer)

export const orNull = async <T>(asked: Promise<T>): Promise<T | null> => {
  try {
    return await asked
  } catch (error) {
    if (isNotFound(error)) return null
    throw error
  }
}

export interface Api {
  client: EngineClient
  info(signal: AbortSignal): Promise<EngineInfo>
  image(name: string, signal: AbortSignal): Promise<Image | null>
  containers(wanted: Record<string, readonly string[]>, signal: AbortSignal): Promise<ListedContainer[]>
  networks(label: string, signal: AbortSignal): Promise<Network[]>
  volumes(label: string, signal: AbortSignal): Promise<Volume[]>
  /** By id or name; null: an exact not-found. */
  container(id: string, signal: AbortSignal): Promise<Container | null>
  network(id: string, signal: AbortSignal): Promise<Network | null>
  volume(name: string, signal: AbortSignal): Promise<Volume | null>
  post<T>(path: string, body: unknown, signal: AbortSignal, query?: Record<string, string | number>): Promise<T>
  /** False: it was not there. @throws EngineError */
  delete(path: string, signal: AbortSignal, query?: Record<string, string | boolean>): Promise<boolean>
}

const apiOf = (client: EngineClient): Api => {
  const get = async <T>(path: string, signal: AbortSignal, query: Record<string, string | boolean> = {}): Promise<T> =>
    (await client.call<T>({ method: 'GET', path, query, signal })).body
  return {
    client,
    info: (signal) => get('/info', signal),
    image: (name, signal) => orNull(get(`/images/${segment(name)}/json`, signal)),
    containers: (wanted, signal) => get('/containers/json', signal, { all: true, filters: filters(wanted) }),
    networks: (label, signal) => get('/networks', signal, { filters: filters({ label: [label] }) }),
    async volumes(label, signal) {
      const { Volumes: volumes } = await get<{ Volumes: Volume[] | null }>('/volumes', signal, { filters: filters({ label: [label] }) })
      return volumes ?? []
    },
    container: (id, signal) => orNull(get(`/containers/${segment(id)}/json`, signal)),
    network: (id, signal) => orNull(get(`/networks/${segment(id)}`, signal)),
    volume: (name, signal) => orNull(get(`/volumes/${segment(name)}`, signal)),
    post: async <T>(path: string, body: unknown, signal: AbortSignal, query: Record<string, string | number> = {}) =>
      (await client.call<T>({ method: 'POST', path, query, body, signal })).body,
    delete: async (path, signal, query = {}) => {
      const done = await orNull(client.call({ method: 'DELETE', path, query, signal }))
      return done !== null
    },
  }
}

/** One client for each address, kept. */
export const createApis = (): ((address: EngineAddress) => Api) => {
  const known = new Map<string, Api>()
  return (address) => {
    const key = JSON.stringify(address)
    const api = known.get(key) ?? apiOf(createEngineClient(address))
    known.set(key, api)
    return api
  }
}
