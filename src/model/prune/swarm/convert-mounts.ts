/** The mounts of one service. A volume takes its labels from here: the node that first needs it makes it with them. */
import type { Path } from '../document.ts'
import { compact } from '../compose/shapes.ts'
import type { MountDef, VolumeDef } from '../compose/types.ts'
import { scopedName } from '../names.ts'
import { stamped, type Stamp } from './stamp.ts'
import type { Mount } from './types.ts'

export interface MountInput {
  mounts: readonly MountDef[]
  release: string
  volumes: Record<string, VolumeDef>
  stamp: Stamp | null
  blame: (path: Path, message: string, fix?: string | null) => void
}

export const convertMounts = (input: MountInput): Mount[] => {
  const targets = new Set<string>()
  return input.mounts.map((one, index) => {
    if (one.target === '' || !one.target.startsWith('/')) {
      input.blame(['volumes', index], `"${one.target}" is no absolute path in the container`, 'Write a path that begins with /')
    } else if (targets.has(one.target)) input.blame(['volumes', index], `two mounts are at ${one.target}`, 'Take one of them out')
    targets.add(one.target)
    return convert(one, index, input)
  })
}

const convert = (one: MountDef, index: number, input: MountInput): Mount => {
  const plain = compact<Mount>({ Type: one.type, Source: one.source, Target: one.target, ReadOnly: one.readOnly })
  switch (one.type) {
    case 'bind':
      if (!one.source?.startsWith('/')) {
        const fix = 'Write the absolute path that it has on the nodes, or use a config'
        input.blame(['volumes', index], `"${one.source ?? ''}" is a path from here, and the service runs on other machines`, fix)
      }
      return { ...plain, ...(one.propagation !== undefined && { BindOptions: { Propagation: one.propagation } }) }
    case 'tmpfs':
      if (one.source !== undefined) input.blame(['volumes', index], 'a tmpfs has no source', 'Take it out')
      return { ...plain, ...(one.tmpfsBytes !== undefined && { TmpfsOptions: { SizeBytes: one.tmpfsBytes } }) }
    case 'volume':
      return one.source === undefined ? plain : named(plain, one, one.source, index, input)
  }
}

const named = (plain: Mount, one: MountDef, source: string, index: number, input: MountInput): Mount => {
  const def = Object.hasOwn(input.volumes, source) ? input.volumes[source] : undefined
  if (!def) input.blame(['volumes', index], `there is no volume "${source}"`, 'Declare it under volumes, at the top of the file')
  const name = scopedName(input.release, source, def?.name)
  const copy = one.nocopy === undefined ? {} : { NoCopy: one.nocopy }
  if (def?.external) return { ...plain, Source: name, VolumeOptions: copy }
  const driver =
    def?.driver !== undefined || def?.driver_opts !== undefined
      ? { DriverConfig: compact<{ Name?: string; Options?: Record<string, string> }>({ Name: def.driver, Options: def.driver_opts }) }
      : {}
  return {
    ...plain,
    Source: name,
    VolumeOptions: { ...copy, Labels: stamped(def?.labels, input.release, input.stamp, 'volume', name), ...driver },
  }
}
