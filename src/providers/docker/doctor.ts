import { addressText } from '../../lib/docker/address.ts'
import { EngineUnreachable } from '../../lib/docker/errors.ts'
import type { DoctorCheck } from '../../model/wire.ts'
import type { Api, EngineInfo } from './api.ts'
import type { DockerConfig } from './config.ts'
import { errorText } from './words.ts'

const ok = (name: string, message: string): DoctorCheck => ({ name, level: 'ok', message, remedy: null })

const remedyFor = (api: Api, error: unknown): string => {
  const reason = error instanceof EngineUnreachable ? error.reason : undefined
  if (reason === 'EACCES') return 'let the user that runs the coordinator use the socket: put it into the group docker, and start it again'
  if (reason === 'ENOENT' || reason === 'ECONNREFUSED')
    return "start Docker there, or give the backend the right address (its setting 'host')"
  if (api.client.address.kind === 'ssh')
    return 'see that "ssh HOST docker version" works there without a question, as the user that runs the coordinator'
  if (api.client.address.kind === 'tcp') return 'check address, certificates (tlsCa, tlsCert, tlsKey) and what is between'
  return "see whether Docker runs there, and give the backend the right address (its setting 'host')"
}

const checkImage = async (api: Api, config: DockerConfig, signal: AbortSignal): Promise<DoctorCheck> => {
  const name = 'docker: image'
  const image = await api.image(config.image, signal)
  if (image !== null && image.Os === 'linux') return ok(name, `boxes are made of ${config.image}`)
  return image === null
    ? {
        name,
        level: 'error',
        message: `image ${config.image} is not on the Engine, and nothing is pulled: no box can be made`,
        remedy: `bring it there: docker pull ${config.image}; or name another one with the backend's setting image`,
      }
    : { name, level: 'error', message: `image ${config.image} is one for ${image.Os}`, remedy: 'name one for Linux with the setting image' }
}

const engineText = ({ Name: name, ServerVersion: version, ID: id }: EngineInfo, api: string): string =>
  `Engine ${version} on ${name} (${id}), API ${api}`

/** Can boxes be made there, and of what? */
export const checkEngine = async (api: Api, config: DockerConfig, signal: AbortSignal): Promise<DoctorCheck[]> => {
  const name = 'docker: engine'
  try {
    const version = await api.client.version(signal)
    const info = await api.info(signal)
    if (info.OSType !== 'linux')
      return [{ name, level: 'error', message: `the Engine makes containers for ${info.OSType}`, remedy: 'switch it to Linux containers' }]
    return [ok(name, `${engineText(info, version)}, at ${addressText(api.client.address)}`), await checkImage(api, config, signal)]
  } catch (error) {
    return [{ name, level: 'error', message: errorText(error), remedy: remedyFor(api, error) }]
  }
}
