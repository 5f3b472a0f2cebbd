/** What is left on this machine of one installation: folders, and live processes that carry its tag. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { listPids, processEnvironment, processStat } from '../../src/lib/host.ts'

/** Names of box folders, those in the middle of a removal included. */
export const boxFolders = (data: string): string[] => (existsSync(join(data, 'boxes')) ? readdirSync(join(data, 'boxes')).toSorted() : [])

/** Live processes started with an environment variable of exactly this value. */
export const processesWith = (name: string, value: string): number[] =>
  (listPids() ?? []).filter((pid) => {
    const environment = processEnvironment(pid)
    return environment.kind === 'read' && environment.values.get(name) === value && processStat(pid)?.alive === true
  })
