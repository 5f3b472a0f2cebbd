/** Making a box: its folder first, whole and durable, then its first process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { bootId, pidNamespaceInode, uptimeSeconds } from '../../lib/host.ts'
import { exportLines, unsettable } from '../../lib/shell-variables.ts'
import type { ScopeId } from '../../model/ids.ts'
import type { CallContext, CreateOutcome, CreateRequest } from '../contract.ts'
import { type ModeChoice, searchPath, unshareOptions } from './capability.ts'
import {
  type Box,
  type BoxRecord,
  boxFolder,
  deleteFolder,
  makeScratch,
  publish,
  readBox,
  readInit,
  takeClaim,
  writeDurably,
} from './folder.ts'
import { initStateOf, inspectAll, resourceOf } from './inspect.ts'
import { enterScript, initScript } from './scripts.ts'
import { errorText, tag } from './words.ts'

export interface CreateSetting {
  dataFolder: string
  scope: ScopeId
  choice: ModeChoice & { kind: 'mode' }
}

const rejected = (code: string, message: string): CreateOutcome => ({ kind: 'rejected', code, message })

/** The text of the `deadline` file: hundredths of a second since boot. */
export const deadlineText = (secondsFromNow: number): string => `${Math.round(((uptimeSeconds() ?? 0) + secondsFromNow) * 100)}\n`

const tagsOf = (request: CreateRequest): Record<string, string> => ({
  [tag.ref]: request.ref,
  [tag.installation]: request.installation,
  [tag.attempt]: request.attemptToken,
  ...(request.mac === null ? {} : { [tag.mac]: request.mac }),
  ...(request.leaseId === null ? {} : { [tag.lease]: request.leaseId }),
})

const build = async (request: CreateRequest, setting: CreateSetting): Promise<boolean> => {
  const { mode, userNamespace } = setting.choice
  const observer = pidNamespaceInode('self')
  const record: BoxRecord = {
    version: 1,
    ref: request.ref,
    installation: request.installation,
    attemptNumber: request.attemptNumber,
    attemptToken: request.attemptToken,
    ...(request.mac === null ? {} : { mac: request.mac }),
    leaseID: request.leaseId,
    name: request.name,
    project: request.project,
    labels: request.labels,
    createdAt: new Date().toISOString(),
    mode,
    userNamespace,
    bootID: bootId() ?? '',
    ...(observer === null ? {} : { observer }),
  }
  const scratch = await makeScratch(setting.dataFolder, request.ref, randomBytes(4).toString('hex'))
  try {
    const write = (name: string, text: string): Promise<void> => writeFile(join(scratch, name), text, { mode: 0o600, flag: 'wx' })
    await Promise.all([
      writeDurably(join(scratch, 'box.json'), `${JSON.stringify(record, null, 2)}\n`),
      write('env', exportLines({ ...request.secretEnvironment, ...tagsOf(request) })),
      write('init.sh', initScript),
      write('enter.sh', enterScript),
      write('init.log', ''),
      write('deadline', deadlineText(request.maximumLifetimeSeconds)),
      mkdir(join(scratch, 'home'), { mode: 0o700 }),
      ...(mode === 'session' ? [mkdir(join(scratch, 'sessions'), { mode: 0o700 })] : []),
    ])
    if (await publish(setting.dataFolder, scratch, `${request.ref}-${request.attemptNumber}`)) return true
  } catch (error) {
    await rm(scratch, { recursive: true, force: true })
    throw error
  }
  await rm(scratch, { recursive: true, force: true })
  return false
}

/** Detached, in a session of its own: it outlives the coordinator. What it is started with goes to it and not to its supervisor. */
const startInit = (box: Box, request: CreateRequest): ChildProcess => {
  const tags = Object.entries(tagsOf(request)).map(([name, value]) => `${name}=${value}`)
  const init = ['env', ...tags, 'sh', join(box.folder, 'init.sh'), box.record.mode]
  const [command, ...args] =
    box.record.mode === 'namespace' ? ['unshare', ...unshareOptions(box.record.userNamespace), '--', ...init] : init
  const log = openSync(join(box.folder, 'init.log'), 'a')
  try {
    // Only a search path: what the coordinator was started with is none of a box's business.
    const child = spawn(command as string, args, {
      cwd: '/',
      env: { PATH: searchPath() },
      stdio: ['ignore', 'ignore', log],
      detached: true,
    })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

const pollMs = 3
/** How long a first process may take from its claim to its report. */
const reportMs = 2000

const made = (box: Box, scope: ScopeId): CreateOutcome => {
  const resource = resourceOf(box, scope)
  const state = initStateOf(box)
  if (state === 'alive') return { kind: 'created', resource, ready: true }
  return {
    kind: 'uncertain',
    message: `the box of this attempt was made, and its first process is ${state === 'foreign' ? 'not what it recorded' : 'gone'}`,
    resource,
  }
}

const awaitInit = async (box: Box, done: () => boolean): Promise<Box | null> => {
  for (;;) {
    const last = done()
    const init = await readInit(box.folder)
    if (init !== null) return { ...box, init }
    if (last) return null
    await pause(pollMs)
  }
}

const startedUnseen = (box: Box, setting: CreateSetting): CreateOutcome => ({
  kind: 'uncertain',
  message: 'the box was started and has not reported',
  resource: resourceOf(box, setting.scope),
})

/** Nothing has reported: make sure that nothing ever will, or find out what did. */
const settle = async (
  box: Box,
  child: ChildProcess,
  setting: CreateSetting,
  failure: CreateOutcome & { kind: 'rejected' },
): Promise<CreateOutcome> => {
  const own = AbortSignal.timeout(10_000)
  if (await takeClaim(box.folder)) {
    child.ref()
    if (child.kill('SIGKILL')) await once(child, 'exit', { signal: own })
    // One that found the claim taken may still be on its way out.
    const { inspections, table } = await inspectAll([box], own)
    if (table.incomplete !== null || inspections[0]?.state === 'starting') return startedUnseen(box, setting)
  } else {
    const end = performance.now() + reportMs
    const late = await awaitInit(box, () => performance.now() > end)
    if (late !== null) return made(late, setting.scope)
    const { inspections, table } = await inspectAll([box], own)
    if (table.incomplete !== null || inspections[0]?.state !== 'unstarted') return startedUnseen(box, setting)
  }
  await deleteFolder(setting.dataFolder, box, own)
  return failure
}

const start = async (box: Box, request: CreateRequest, setting: CreateSetting, { signal }: CallContext): Promise<CreateOutcome> => {
  const child = startInit(box, request)
  let failure: string | null = null
  child.on('error', (error) => (failure = errorText(error)))
  child.on('exit', (code, killedBy) => (failure ??= `it ended with ${killedBy ?? code}`))
  const reported = await awaitInit(box, () => failure !== null || signal.aborted)
  if (reported !== null) return made(reported, setting.scope)
  const log = (await readFile(join(box.folder, 'init.log'), 'utf8').catch(() => '')).slice(0, 500).trim()
  const why =
    failure === null
      ? rejected('aborted', 'the call was ended before the box started')
      : rejected('box_start_failed', `the box did not start: ${log || failure}`)
  return settle(box, child, setting, why as CreateOutcome & { kind: 'rejected' })
}

/**
 * Makes a box, or finds the one that this token has made: never a second one. Throws only what leaves the outcome
 * open, which the engine takes as `uncertain`.
 */
export const createBox = async (request: CreateRequest, setting: CreateSetting, context: CallContext): Promise<CreateOutcome> => {
  if (context.signal.aborted) return rejected('aborted', 'the call was ended before anything was made')
  const bad = unsettable(request.secretEnvironment)
  if (bad !== null)
    return rejected('environment_invalid', `'${bad}' can't be set in a box: not a variable's name, or its value holds a zero byte`)
  const nativeId = `${request.ref}-${request.attemptNumber}`
  let stored = await readBox(setting.dataFolder, nativeId)
  if (stored.kind === 'none') {
    try {
      await build(request, setting)
    } catch (error) {
      // Nothing is started before the folder has its name, and its scratch is deleted.
      return rejected('folder_failed', `the folder of the box can't be made: ${errorText(error)}`)
    }
    stored = await readBox(setting.dataFolder, nativeId)
  }
  if (stored.kind === 'none') return rejected('aborted', 'the box was taken back while it was being made')
  if (stored.kind === 'damaged') return rejected('name_taken', `${boxFolder(setting.dataFolder, nativeId)} is in the way: ${stored.why}`)
  const { box } = stored
  if (box.record.attemptToken !== request.attemptToken) return rejected('name_taken', `${box.folder} belongs to another attempt`)
  if (box.removing)
    return { kind: 'uncertain', message: 'the box of this attempt is being removed', resource: resourceOf(box, setting.scope) }
  return box.init === null ? start(box, request, setting, context) : made(box, setting.scope)
}
