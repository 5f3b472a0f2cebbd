/**
 * A box for its next holder: a restart ends all that runs in it and takes away what is in memory, then its volumes are emptied. What a holder changed of
 * the image itself can't be taken back: such a box is not wiped, and another is made in its place.
 *
 * The proof is the Engine's own look from outside: its processes, what differs from the image, what its volumes hold. Where these show that the image is as
 * it was, its programs can be asked what is in memory, which the Engine does not see.
 */
import type { IncomingMessage } from 'node:http'
import { runExec } from '../../lib/docker/exec.ts'
import type { LeftoverOutcome, WipeContext, WipeOutcome } from '../contract.ts'
import type { Api, Container } from './api.ts'
import { furnish } from './furnish.ts'
import type { Box } from './look.ts'
import { emptyScript, memoryScript } from './scripts.ts'
import { tarNames } from './tar.ts'
import { errorText, note, privateFolder } from './words.ts'

const mostShown = 20
const lost = 'whoever wiped it may have lost it meanwhile'

const runningOf = async (api: Api, box: Box, signal: AbortSignal): Promise<Container | string> => {
  if (box.container === null) return `the container of ${box.nativeId} is gone`
  const now = await api.container(box.container.Id, signal)
  if (now === null) return `the container of ${box.nativeId} is gone`
  return now.State.Status === 'running' ? now : `the box is ${now.State.Status}`
}

/** Where its volume is. An image that asks for volumes of its own puts something in them, which nobody can tell from what a holder put there. */
const volumeFolder = (box: Box, { Mounts: mounts }: Container): string => {
  const volumes = (mounts ?? []).filter((mount) => mount.Type !== 'tmpfs')
  const own = volumes.find((mount) => mount.Name === box.volumeName)
  if (own === undefined || volumes.length > 1) throw new Error('its image asks for volumes of its own, or its own volume is missing')
  return own.Destination
}

const inBox = async (api: Api, container: string, script: string, args: readonly string[], signal: AbortSignal): Promise<string> => {
  const command = ['/bin/sh', '-c', script, 'leasehold', ...args]
  const ran = await runExec(api.client, container, { command, user: '0:0', folder: '/' }, signal)
  if (ran.status !== 0) throw new Error(`status ${ran.status}: ${ran.stderr.trim().slice(0, 300)}`)
  return ran.stdout
}

/** `box`: as just located by its identity. */
export const clearBox = async (api: Api, box: Box, graceSeconds: number, { signal, stands }: WipeContext): Promise<WipeOutcome> => {
  const before = await runningOf(api, box, signal)
  if (typeof before === 'string') return { kind: 'failed', why: before }
  const folder = volumeFolder(box, before)
  const changed = await changesOf(api, before, signal)
  if (changed.length > 0) return { kind: 'failed', why: `its last holder changed the image's own files: ${changed.slice(0, 3).join(', ')}` }
  if (!stands()) return { kind: 'failed', why: lost }
  await api.post(`/containers/${before.Id}/restart`, undefined, signal, { t: Math.ceil(graceSeconds) + 1 })
  if (!stands()) return { kind: 'failed', why: lost }
  const labels = before.Config.Labels ?? {}
  try {
    await inBox(api, before.Id, emptyScript, [folder], signal)
    await furnish(api, before.Id, { env: '', folder, user: labels[note.user] ?? '' }, signal)
  } catch (error) {
    return { kind: 'failed', why: `its volumes could not be emptied: ${errorText(error)}` }
  }
  return { kind: 'wiped' }
}

/** What differs from the image, but where something is mounted. */
const changesOf = async (api: Api, container: Container, signal: AbortSignal): Promise<string[]> => {
  const { body } = await api.client.call<{ Path: string }[] | null>({ method: 'GET', path: `/containers/${container.Id}/changes`, signal })
  const mounted = [...Object.keys(container.HostConfig.Tmpfs ?? {}), ...(container.Mounts ?? []).map((mount) => mount.Destination)]
  // A mount's folder, and those that it is in, may have been made for it.
  const own = (path: string): boolean => mounted.some((one) => one === path || one.startsWith(`${path}/`))
  return (body ?? []).map((one) => one.Path).filter((path) => !own(path))
}

/** All but the clock, and the one sleep that it waits for. */
const processesOf = async (api: Api, container: Container, signal: AbortSignal): Promise<string[]> => {
  const { body } = await api.client.call<{ Titles: string[]; Processes: string[][] | null }>({
    method: 'GET',
    path: `/containers/${container.Id}/top`,
    query: { ps_args: '-eo pid,ppid,args' },
    signal,
  })
  const seen = (body.Processes ?? []).map(([pid = '', parent = '', words = '']) => ({ pid, parent, words }))
  const clock = String(container.State.Pid)
  if (!seen.some(({ pid }) => pid === clock)) throw new Error('its processes are listed without its first one')
  const sleeper = seen.find(({ parent, words }) => parent === clock && /^sleep \d+$/.test(words))
  return seen.filter((one) => one.pid !== clock && one !== sleeper).map(({ pid, words }) => `process ${pid} (${words.slice(0, 60)})`)
}

const contentsOf = async (api: Api, container: Container, folder: string, signal: AbortSignal): Promise<string[]> => {
  const answer: IncomingMessage = await api.client.stream({
    method: 'GET',
    path: `/containers/${container.Id}/archive`,
    query: { path: `${folder}/.` },
    signal,
  })
  const names: string[] = []
  try {
    for await (const name of tarNames(answer as AsyncIterable<Buffer>)) {
      const plain = name.replace(/^\.?\/+|\/+$/g, '')
      if (plain !== '' && plain !== '.') names.push(`${folder}/${plain}`)
      if (names.length >= mostShown) break
    }
  } finally {
    answer.destroy()
  }
  return names
}

export const leftoversOf = async (api: Api, box: Box, signal: AbortSignal): Promise<LeftoverOutcome> => {
  const now = await runningOf(api, box, signal)
  if (typeof now === 'string') return { kind: 'incomplete', why: now }
  const left = await changesOf(api, now, signal)
  left.push(...(await contentsOf(api, now, volumeFolder(box, now), signal)))
  left.push(...(await processesOf(api, now, signal)))
  // Whoever could have changed the programs of the image could have them say anything.
  const tampered = left.length > 0
  if (!tampered)
    left.push(
      ...(await inBox(api, now.Id, memoryScript, [privateFolder, '/dev/shm', ...memoryFolders(now)], signal)).split('\n').filter(Boolean),
    )
  const after = await runningOf(api, box, signal)
  if (typeof after === 'string' || after.State.Pid !== now.State.Pid)
    return { kind: 'incomplete', why: 'the box was restarted while it was looked at' }
  return {
    kind: 'complete',
    left: left.slice(0, mostShown),
    looked: 'no process but its clock, the image as it is, nothing in volumes and memory',
  }
}

const memoryFolders = ({ HostConfig }: Container): string[] =>
  Object.keys(HostConfig.Tmpfs ?? {}).filter((folder) => folder !== privateFolder)
