/**
 * Making a box: its network, its volume, its container, in this order, each with all labels in the call that makes it. Any step may be repeated: the volume's
 * name decides which of two creates with one token is the first, the container's which of two attempts.
 *
 * A call that changes something is never cut short by the caller's end: it is waited for, and nothing more is begun.
 */
import { isStatus } from '../../lib/docker/errors.ts'
import { exportLines, unsettable } from '../../lib/shell-variables.ts'
import type { ScopeId } from '../../model/ids.ts'
import type { CallContext, CreateOutcome, CreateRequest } from '../contract.ts'
import type { Api, Container, Image } from './api.ts'
import type { DockerConfig } from './config.ts'
import { containerBody } from './container.ts'
import { furnish } from './furnish.ts'
import { isEngineId, labelsOf, nativeIdOf, partName } from './identity.ts'
import { type Box, lookAt, madeWith, resourceOf } from './look.ts'
import { errorText, note, tag } from './words.ts'

const stepMs = 25_000
const step = (): AbortSignal => AbortSignal.timeout(stepMs)

/** Nothing more is to be done, and why: what this call made is taken back. */
class Refusal extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** What this very call made. */
interface Made {
  networks: string[]
  volume: string | null
  container: string | null
}

interface Making {
  api: Api
  request: CreateRequest
  config: DockerConfig
  image: Image
  user: string
  made: Made
  signal: AbortSignal
}

const goOn = ({ signal }: Making): void => {
  if (signal.aborted) throw new Refusal('aborted', 'the call was ended before the box was made')
}

const labels = ({ request, config, user }: Making, network: string | null): Record<string, string> =>
  labelsOf(request, { network, folder: config.folder, user })

const makeNetwork = async (making: Making): Promise<string> => {
  const { api, request, config, made } = making
  try {
    const { Id: id } = await api.post<{ Id: string }>(
      '/networks/create',
      {
        Name: partName(request),
        // An Engine of before 1.44 takes a name twice otherwise.
        CheckDuplicate: true,
        Driver: 'bridge',
        Internal: config.network === 'internal',
        Labels: labels(making, null),
      },
      step(),
    )
    made.networks.push(id)
    return id
  } catch (error) {
    if (isStatus(error, 409)) return (await ownBox(making))?.networks[0]?.Id ?? nameTaken(`network ${partName(request)}`)
    if (errorText(error).includes('address pool'))
      throw new Refusal(
        'no_address_pool',
        `${errorText(error)}; the Engine has addresses for so many networks only: remove some that nobody uses ("docker network prune"), or give it smaller ones, "default-address-pools" in its daemon.json`,
      )
    throw error
  }
}

const nameTaken = (what: string): never => {
  throw new Refusal('name_taken', `${what} is there already and belongs to another`)
}

const ownBox = async ({ api, request }: Pick<Making, 'api' | 'request'>): Promise<Box | undefined> =>
  (await lookAt(api, request.ref, step())).boxes.find((box) => box.token === request.attemptToken)

/** @returns the network that the box is made by: that of whoever made the volume */
const makeVolume = async (making: Making, network: string): Promise<string> => {
  const { api, request, made } = making
  const name = partName(request)
  const before = await api.volume(name, step())
  const volume =
    before ??
    (await api.post<{ Labels: Record<string, string> | null }>('/volumes/create', { Name: name, Labels: labels(making, network) }, step()))
  const said = volume.Labels?.[note.network]
  if (said === undefined || !isEngineId(said) || volume.Labels?.[tag.attempt] !== request.attemptToken) return nameTaken(`volume ${name}`)
  if (said === network) {
    if (before === null) made.volume = name
    return network
  }
  // Another create with the same token was first.
  for (const own of made.networks.splice(0)) await api.delete(`/networks/${own}`, step())
  return said
}

const isOwnContainer = (container: Container, { request }: Making, network: string): boolean => {
  const { Config, HostConfig, Mounts } = container
  const name = madeWith({ Labels: Config.Labels, HostConfig, Mounts })
  return name?.token === request.attemptToken && Config.Labels?.[note.network] === network
}

const makeContainer = async (making: Making, network: string): Promise<string> => {
  const { api, request, made } = making
  const name = nativeIdOf(request.ref, request.attemptNumber)
  try {
    const { Id: id } = await api.post<{ Id: string }>('/containers/create', containerBody({ ...making, network }), step(), { name })
    made.container = id
    return id
  } catch (error) {
    if (!isStatus(error, 409)) throw error
    const there = await api.container(name, step())
    return there !== null && isOwnContainer(there, making, network) ? there.Id : nameTaken(`container ${name}`)
  }
}

const startContainer = async (making: Making, container: string): Promise<void> => {
  const { api, request, config, user } = making
  const needs = 'an image for boxes needs /bin/sh, sleep, mv and chmod'
  try {
    await api.post(`/containers/${container}/start`, undefined, step())
    await furnish(api, container, { env: exportLines(request.secretEnvironment), folder: config.folder, user }, step())
  } catch (error) {
    if (making.made.container === null) throw error
    throw new Refusal('box_start_failed', `the box did not start: ${errorText(error)}; ${needs}`)
  }
  const now = await api.container(container, step())
  if (now?.State.Running !== true) throw new Refusal('box_start_failed', `the box ended as soon as it was started; ${needs}`)
}

/** Takes back what this call made, and says whether nothing of the attempt is left. */
const takeBack = async ({ api, request, made }: Making, scope: ScopeId, why: Refusal | Error): Promise<CreateOutcome> => {
  const message = why.message
  let box: Box | undefined
  try {
    if (made.container !== null) await api.delete(`/containers/${made.container}`, step(), { force: true, v: true })
    for (const network of made.networks) await api.delete(`/networks/${network}`, step())
    if (made.volume !== null) await api.delete(`/volumes/${made.volume}`, step())
    box = await ownBox({ api, request })
    if (box === undefined) return { kind: 'rejected', code: why instanceof Refusal ? why.code : 'engine_error', message }
  } catch (error) {
    box = await ownBox({ api, request }).catch(() => undefined)
    return {
      kind: 'uncertain',
      message: `${message}; taking back what was made: ${errorText(error)}`,
      resource: box ? resourceOf(box, scope) : null,
    }
  }
  return { kind: 'uncertain', message, resource: resourceOf(box, scope) }
}

const imageFor = async (api: Api, { image: name, host }: DockerConfig, signal: AbortSignal): Promise<Image> => {
  const image = await api.image(name, signal)
  if (image === null)
    throw new Refusal(
      'image_missing',
      `image ${name} is not on the Engine at ${host}, and nothing is pulled: bring it there ("docker pull ${name}", "docker load", "docker import"), or name another one with the backend's setting image`,
    )
  if (image.Os !== 'linux') throw new Refusal('image_unsupported', `image ${name} is one for ${image.Os}, and boxes are Linux`)
  return image
}

/** Makes a box, or finds the one that this token has made: never a second one. */
export const createBox = async (
  api: Api,
  scope: ScopeId,
  request: CreateRequest,
  config: DockerConfig,
  { signal }: CallContext,
): Promise<CreateOutcome> => {
  const bad = unsettable(request.secretEnvironment)
  if (bad !== null)
    return {
      kind: 'rejected',
      code: 'environment_invalid',
      message: `'${bad}' can't be set in a box: not a variable's name, or its value holds a zero byte`,
    }
  let image: Image
  let before: Box | undefined
  try {
    image = await imageFor(api, config, signal)
    before = await ownBox({ api, request })
  } catch (error) {
    // Nothing was asked for yet. An earlier call with this token may have made something all the same.
    if (error instanceof Refusal && before === undefined && (await ownBox({ api, request }).catch(() => null)) === undefined)
      return { kind: 'rejected', code: error.code, message: error.message }
    return { kind: 'uncertain', message: errorText(error), resource: null }
  }
  const making: Making = {
    api,
    request,
    config,
    image,
    user: image.Config?.User ?? '',
    made: { networks: [], volume: null, container: null },
    signal,
  }
  if (before?.container && !['created', 'running'].includes(before.container.State))
    return {
      kind: 'uncertain',
      message: `the box of this attempt was made, and is ${before.container.State}`,
      resource: resourceOf(before, scope),
    }
  try {
    goOn(making)
    let network = before?.network ?? (await makeNetwork(making))
    goOn(making)
    network = await makeVolume(making, network)
    goOn(making)
    const container = before?.container?.Id ?? (await makeContainer(making, network))
    goOn(making)
    await startContainer(making, container)
    const box = await ownBox(making)
    if (box?.container?.Id !== container)
      return { kind: 'uncertain', message: 'the box was made, and is not listed', resource: box ? resourceOf(box, scope) : null }
    return { kind: 'created', resource: resourceOf(box, scope), ready: true }
  } catch (error) {
    return takeBack(making, scope, error instanceof Error ? error : new Error(errorText(error)))
  }
}
