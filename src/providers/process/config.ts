import { ConfigError } from '../contract.ts'
import type { BoxMode } from './words.ts'

export interface ProcessConfig {
  /** `auto`: namespaces where they can be made, else sessions. `namespace` refuses instead of falling back. */
  mode: 'auto' | BoxMode
  /** How long a removal lets a box end by itself between TERM and KILL. */
  graceSeconds: number
}

const modes: readonly ProcessConfig['mode'][] = ['auto', 'namespace', 'session']
/** Two thirds of the deadline of a call. */
const maximumGraceSeconds = 20

/** Throws `ConfigError`, naming the key. Missing and null give the default. */
export const parseProcessConfig = (config: unknown): ProcessConfig => {
  if (config !== undefined && config !== null && (typeof config !== 'object' || Array.isArray(config))) {
    throw new ConfigError('the configuration of a process backend must be a mapping')
  }
  const { mode: givenMode, graceSeconds: givenGrace, ...unknown } = (config ?? {}) as Record<string, unknown>
  const [surplus] = Object.keys(unknown)
  if (surplus !== undefined) throw new ConfigError(`unknown key '${surplus}'; a process backend knows mode and graceSeconds`)
  const mode = modes.find((known) => known === (givenMode ?? process.env['LEASEHOLD_PROCESS_MODE'] ?? 'auto'))
  if (mode === undefined) throw new ConfigError(`mode must be one of ${modes.join(', ')}`)
  const graceSeconds = givenGrace ?? 5
  if (typeof graceSeconds !== 'number' || !(graceSeconds >= 0 && graceSeconds <= maximumGraceSeconds)) {
    throw new ConfigError(`graceSeconds must be a number from 0 to ${maximumGraceSeconds}`)
  }
  return { mode, graceSeconds }
}
