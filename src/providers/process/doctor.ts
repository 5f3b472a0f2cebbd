import { randomBytes } from 'node:crypto'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { DoctorCheck } from '../../model/wire.ts'
import { type Namespaces, unsupportedHere } from './capability.ts'
import type { ProcessConfig } from './config.ts'
import { boxesFolder } from './folder.ts'
import { readTable } from './table.ts'
import { errorText } from './words.ts'

const ok = (name: string, message: string): DoctorCheck => ({ name, level: 'ok', message, remedy: null })

const namespaceRemedy =
  'install util-linux (unshare, nsenter); as an ordinary user allow user namespaces (sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone, ' +
  'kernel.apparmor_restrict_unprivileged_userns=0); in a container give it CAP_SYS_ADMIN'

const checkNamespaces = (config: ProcessConfig, namespaces: Namespaces): DoctorCheck => {
  const name = 'process: boxes'
  if (config.mode === 'session') {
    return {
      name,
      level: 'warning',
      message: 'boxes are sessions, as configured: what leaves its session is only reported',
      remedy: 'set mode to auto',
    }
  }
  if (namespaces.kind === 'possible')
    return ok(
      name,
      namespaces.userNamespace
        ? 'boxes are PID namespaces, made as an ordinary user, in a user namespace: setuid programs (sudo, su) gain no rights inside'
        : 'boxes are PID namespaces, made as root',
    )
  const why = `no PID namespace can be made here (${namespaces.why})`
  if (config.mode === 'namespace')
    return { name, level: 'error', message: `${why}, and mode is namespace: no box can be made`, remedy: namespaceRemedy }
  return {
    name,
    level: 'warning',
    message: `${why}: boxes are sessions, and what leaves its session is only reported`,
    remedy: namespaceRemedy,
  }
}

const checkProc = async (signal: AbortSignal): Promise<DoctorCheck> => {
  const { entries, denied, incomplete } = await readTable(signal)
  const name = 'process: /proc'
  if (incomplete !== null)
    return { name, level: 'error', message: incomplete, remedy: 'mount /proc, and let the user that runs the coordinator list it' }
  const unseen = denied === 0 ? '' : `; ${denied} of them may not be examined, so a copy of a tag on them is not reported`
  return ok(name, `/proc shows ${entries.size} processes${unseen}`)
}

const checkFolder = async (dataFolder: string): Promise<DoctorCheck> => {
  const folder = boxesFolder(dataFolder)
  const name = 'process: folder'
  const probe = join(folder, `.doctor-${randomBytes(4).toString('hex')}`)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(probe, '', { flag: 'wx', mode: 0o600 })
    await rm(probe)
    return ok(name, `${folder} is writable`)
  } catch (error) {
    return {
      name,
      level: 'error',
      message: `${folder} is not writable: ${errorText(error)}`,
      remedy: `give it to the user that runs the coordinator, or set LEASEHOLD_DATA`,
    }
  }
}

export const checkHost = async (
  dataFolder: string,
  config: ProcessConfig,
  probe: () => Promise<Namespaces>,
  signal: AbortSignal,
): Promise<DoctorCheck[]> => {
  const unsupported = unsupportedHere()
  if (unsupported !== null)
    return [
      {
        name: 'process: boxes',
        level: 'error',
        message: unsupported,
        remedy: 'use a backend of another provider, or run the coordinator on Linux',
      },
    ]
  const namespaces = config.mode === 'session' ? ({ kind: 'impossible', why: 'not tried' } as const) : await probe()
  return [checkNamespaces(config, namespaces), await checkProc(signal), await checkFolder(dataFolder)]
}
