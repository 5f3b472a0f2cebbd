/** Which Engine this is, by its own word. */
import type { ScopeId } from '../../model/ids.ts'
import type { Api, EngineInfo } from './api.ts'

const usualRoot = '/var/lib/docker'

/** Two Engines of one machine may share their id (it is kept in `/etc/docker`), and never the folder that all of theirs is in. */
export const scopeOf = ({ ID: id, DockerRootDir: root }: EngineInfo): ScopeId =>
  `docker:${id}${root === usualRoot ? '' : `:${root}`}` as ScopeId

/** @throws where the Engine does not say who it is */
export const scopeNow = async (api: Api, signal: AbortSignal): Promise<{ scope: ScopeId; info: EngineInfo }> => {
  const info = await api.info(signal)
  if (typeof info.ID !== 'string' || info.ID === '') throw new Error('the Engine does not say its id')
  return { scope: scopeOf(info), info }
}
