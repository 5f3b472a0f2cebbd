/** One Compose file, valid by the schema, with every short form written out. */
import { isMap, type Json, type JsonMap } from '../document.ts'
import type { Values } from '../interpolate.ts'
import { normalizeFileObject, normalizeNetwork, normalizeVolume } from './normalize-objects.ts'
import { normalizeService } from './normalize-service.ts'
import type { EnvLine } from './env-file.ts'
import { said } from './shapes.ts'
import type { Compose, Problem } from './types.ts'

/** What a normalization needs from outside. */
export interface Surroundings {
  values: Values
  /** The lines of a file of `env_file`, by the path as written. Undefined: it could not be read, which is said elsewhere. */
  envFile: (path: string) => readonly EnvLine[] | undefined
}

export const normalizeCompose = (file: JsonMap, around: Surroundings): { compose: Compose; problems: Problem[] } => {
  const problems: Problem[] = []
  const section = <T>(name: string, one: (value: JsonMap, path: string[], key: string) => T): Record<string, T> =>
    Object.fromEntries(Object.entries(mapOf(file[name])).map(([key, value]) => [key, one(mapOf(value), [name, key], key)]))
  const compose: Compose = {
    services: section('services', (value, path) => normalizeService(value, path, around, problems)),
    networks: section('networks', (value, path, key) => normalizeNetwork(value, path, key, problems)),
    volumes: section('volumes', (value, path, key) => normalizeVolume(value, path, key, problems)),
    configs: section('configs', (value, path, key) => normalizeFileObject(value, path, key, problems)),
    secrets: section('secrets', (value, path, key) => normalizeFileObject(value, path, key, problems)),
  }
  return { compose, problems }
}

/** The paths of `env_file` in a file, as written, with where they stand. */
export const envFilesOf = (file: JsonMap): { path: (string | number)[]; file: string }[] =>
  Object.entries(mapOf(file['services'])).flatMap(([name, service]) => {
    const given = mapOf(service)['env_file']
    if (typeof given === 'string') return [{ path: ['services', name, 'env_file'], file: given }]
    return (Array.isArray(given) ? given : []).map((one, index) => ({ path: ['services', name, 'env_file', index], file: said(one) }))
  })

const mapOf = (value: Json | undefined): JsonMap => (isMap(value) ? value : {})
