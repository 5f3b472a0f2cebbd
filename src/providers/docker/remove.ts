/** Taking a box back: container, network, volume, each by its identity after a fresh read; what is not there is done. May be repeated anywhere (leases R80). */
import { EngineError, isStatus } from '../../lib/docker/errors.ts'
import type { RemoveOutcome } from '../contract.ts'
import { type Api, orNull } from './api.ts'
import { agree, parsePartName } from './identity.ts'
import { type Box, madeWith } from './look.ts'
import { errorText, note } from './words.ts'

type Ended = RemoveOutcome | null

/** Those of others that use its network or volume, before anything of it is ended. */
const usersOf = async (api: Api, box: Box, signal: AbortSignal): Promise<string[]> => {
  const asked = await Promise.all([
    ...box.networks.map((one) => api.containers({ network: [one.Id] }, signal)),
    ...(box.volume === null ? [] : [api.containers({ volume: [box.volumeName] }, signal)]),
  ])
  const others = asked.flat().filter((one) => one.Id !== box.container?.Id)
  return [...new Set(others.map((one) => `container ${one.Names?.[0]?.replace(/^\//, '') ?? one.Id.slice(0, 12)}`))].toSorted()
}

const blocked = (by: string): RemoveOutcome => ({ kind: 'blocked', by })

const removeContainer = async (api: Api, box: Box, graceSeconds: number, signal: AbortSignal): Promise<Ended> => {
  if (box.container === null) return null
  const id = box.container.Id
  const now = await api.container(id, signal)
  if (now === null) return null
  const made = madeWith({ Labels: now.Config.Labels, HostConfig: now.HostConfig, Mounts: now.Mounts })
  if (now.Id !== id || made?.token !== box.token || now.Config.Labels?.[note.network] !== box.network)
    return blocked(`container ${now.Name.replace(/^\//, '')}, which is not of ${box.nativeId}`)
  if (now.State.Running)
    // Its clock passes the TERM on, and ends with whatever is left.
    await orNull(api.post(`/containers/${id}/stop`, undefined, signal, { t: Math.ceil(graceSeconds) + 1 }))
  try {
    // With the volumes that its image asks for: those without a name. Its own has one.
    await api.delete(`/containers/${id}`, signal, { force: true, v: true })
  } catch (error) {
    if (!isStatus(error, 409)) throw error
    return { kind: 'retryLater', why: errorText(error), afterSeconds: 1 }
  }
  return (await api.container(id, signal)) === null
    ? null
    : { kind: 'retryLater', why: `container ${box.nativeId} is still there`, afterSeconds: 1 }
}

const removeNetwork = async (api: Api, box: Box, id: string, signal: AbortSignal): Promise<Ended> => {
  const now = await api.network(id, signal)
  if (now === null) return null
  const name = parsePartName(now.Name)
  if (now.Id !== id || name?.token !== box.token || !agree(name, now.Labels))
    return blocked(`network ${now.Name}, which is not of ${box.nativeId}`)
  try {
    await api.delete(`/networks/${id}`, signal)
    return null
  } catch (error) {
    if (error instanceof EngineError && /active endpoints|in use/i.test(error.answer))
      return blocked(`what is attached to its network: ${error.answer}`)
    throw error
  }
}

const removeVolume = async (api: Api, box: Box, signal: AbortSignal): Promise<Ended> => {
  const now = await api.volume(box.volumeName, signal)
  if (now === null) return null
  const name = parsePartName(now.Name)
  if (name?.token !== box.token || !agree(name, now.Labels) || now.Labels?.[note.network] !== box.network)
    return blocked(`volume ${now.Name}, which is not of ${box.nativeId}`)
  try {
    await api.delete(`/volumes/${encodeURIComponent(box.volumeName)}`, signal)
    return null
  } catch (error) {
    if (isStatus(error, 409)) return blocked(`what uses its volume: ${error.answer}`)
    throw error
  }
}

/** `box`: as just located by its identity. */
export const removeBox = async (api: Api, box: Box, graceSeconds: number, signal: AbortSignal): Promise<RemoveOutcome> => {
  try {
    const [user] = await usersOf(api, box, signal)
    if (user !== undefined) return blocked(`${user}, which uses its network or volume`)
    const failed =
      (await removeContainer(api, box, graceSeconds, signal)) ??
      (await removeNetworks(api, box, signal)) ??
      (await removeVolume(api, box, signal))
    return failed ?? { kind: 'gone', requestId: null }
  } catch (error) {
    if (signal.aborted)
      return { kind: 'retryLater', why: `the removal of ${box.nativeId} was interrupted and goes on where it stopped`, afterSeconds: null }
    if (isStatus(error, 401, 403)) return { kind: 'denied', permission: error.message }
    return { kind: 'unknown', error: errorText(error) }
  }
}

const removeNetworks = async (api: Api, box: Box, signal: AbortSignal): Promise<Ended> => {
  for (const { Id: id } of box.networks) {
    const failed = await removeNetwork(api, box, id, signal)
    if (failed !== null) return failed
  }
  return null
}
