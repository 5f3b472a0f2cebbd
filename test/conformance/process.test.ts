import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe } from 'vitest'
import { pidNamespaceInode, processAlive, processStart, processStat } from '../../src/lib/host.ts'
import type { ResourceIdentity } from '../../src/providers/contract.ts'
import { parseImmutableId } from '../../src/providers/process/identity.ts'
import { states } from '../../src/providers/process/list.ts'
import { argumentsOf, carriesRef, openBoxes, pids, running, uniqueSleep, until } from '../providers/process/support.ts'
import { context } from './request.ts'
import { type ConformanceWorld, providerConformance } from './suite.ts'

const initOf = (resource: ResourceIdentity) => {
  const identity = parseImmutableId(resource.immutableId)
  if (identity?.kind !== 'started') throw new Error('not started')
  return identity.init
}

/** Until the child is what was asked for, and not a copy of its parent. */
const settled = async (pid: number): Promise<string> => {
  await until('it runs', () => argumentsOf(pid)[0] === 'sleep')
  return `pid:${pid}`
}

const setup = (mode: 'namespace' | 'session') => async (): Promise<ConformanceWorld> => {
  const boxes = openBoxes({ mode, graceSeconds: 1 })
  // A folder that can't be read, also by root: a file stands in its place.
  const hideBoxes = async (): Promise<() => Promise<void>> => {
    const folder = join(boxes.dataFolder, 'boxes')
    renameSync(folder, `${folder}.away`)
    writeFileSync(folder, '')
    return async () => {
      rmSync(folder)
      if (existsSync(`${folder}.away`)) renameSync(`${folder}.away`, folder)
    }
  }
  return {
    provider: boxes.provider,
    config: boxes.config,
    states,
    dispose: () => boxes.dispose(),
    // First processes, by their arguments and environment: one for each box that stands. A child that is still to become a sleep looks
    // like its parent.
    async count(ref) {
      const alike = pids().filter((pid) => processStat(pid)?.alive && carriesRef(pid, ref) && argumentsOf(pid)[1]?.endsWith('/init.sh'))
      return alike.filter((pid) => !alike.includes(processStat(pid)?.parent ?? 0)).length
    },
    async stranger() {
      const { resource } = await boxes.make()
      const child = boxes.outside(['sleep', '600'])
      const pid = child.pid as number
      const [boot, inode] = resource.immutableId.split(':')
      const start = processStart(pid) as string
      const own = mode === 'namespace' ? pidNamespaceInode(pid) : inode
      return {
        identity: { ...resource, nativeId: 'zzzzzzzzzzzz-1', immutableId: `${boot}:${own}:${pid}:${start}`, facts: {} },
        stands: () => processAlive(pid, start),
      }
    },
    lies(resource, other) {
      const { boot, inode, pid, start } = initOf(resource)
      const theirs = initOf(other)
      const id = (...parts: (string | number | null)[]): ResourceIdentity => ({
        ...resource,
        immutableId: parts.map((part) => part ?? 'session').join(':'),
      })
      const lies: [string, ResourceIdentity][] = [
        ['the name of one box and the identity of another', { ...resource, immutableId: other.immutableId }],
        ['the same without facts', { ...resource, immutableId: other.immutableId, facts: {} }],
        ['another start time', id(boot, inode, pid, String(Number(start) + 1))],
        ['another pid', id(boot, inode, theirs.pid, start)],
        ['this very process', id(boot, inode, process.pid, processStart(process.pid))],
        ['another machine', { ...resource, scope: 'machine:00000000000000000000000000000000' as ResourceIdentity['scope'] }],
        ['another kind', { ...resource, kind: 'network' }],
        ['nonsense', { ...resource, immutableId: 'none' }],
        ['another boot', id('00000000-0000-0000-0000-000000000000', inode, pid, start)],
      ]
      return inode === null
        ? lies
        : [
            ...lies,
            ['another namespace', id(boot, theirs.inode, pid, start)],
            ["the host's namespace", id(boot, pidNamespaceInode('self'), pid, start)],
          ]
    },
    async copy(resource) {
      const found = await boxes.provider.read(resource, boxes.config, context())
      if (found.kind !== 'present') throw new Error(found.kind)
      const { ref, installation, attempt } = found.found.tags
      const environment = { LEASEHOLD_REF: ref ?? '', LEASEHOLD_INSTALLATION: installation ?? '', LEASEHOLD_ATTEMPT: attempt ?? '' }
      return settled(boxes.outside(['sleep', '600'], environment).pid as number)
    },
    tagged: (ref) => settled(boxes.outside(['sleep', '600'], { LEASEHOLD_REF: ref }).pid as number),
    breakListing: hideBoxes,
    loseAccount: hideBoxes,
    // A process that ends on no signal but KILL, one that has left its session, files, and what a holder may have done to the box's own.
    async leave(resource) {
      const folder = join(boxes.dataFolder, 'boxes', resource.nativeId)
      const [stubborn, detached] = [uniqueSleep(), uniqueSleep()]
      boxes.run(resource, ['sh', '-c', `trap "" TERM HUP; exec sleep ${stubborn}`])
      boxes.run(resource, ['setsid', 'sleep', detached])
      mkdirSync(join(folder, 'home', 'deep'), { recursive: true })
      writeFileSync(join(folder, 'home', 'deep', 'secret.txt'), 'canary')
      writeFileSync(join(folder, 'planted'), '')
      appendFileSync(join(folder, 'env'), 'export PLANTED=1\n')
      appendFileSync(join(folder, 'enter.sh'), '# planted\n')
      await until('they run', () => [stubborn, detached].every((seconds) => running('sleep', seconds).length === 1))
    },
    async kill(resource) {
      const { pid, start } = initOf(resource)
      process.kill(pid, 'SIGKILL')
      await until('its first process is dead', () => !processAlive(pid, start))
    },
  }
}

const namespacesPossible =
  spawnSync('unshare', ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'true']).status === 0

describe.skipIf(process.platform !== 'linux')('on this machine', () => {
  describe.skipIf(!namespacesPossible)('where namespaces can be made', () => {
    providerConformance('process, boxes as namespaces,', setup('namespace'), { wipes: true })
  })
  providerConformance('process, boxes as sessions,', setup('session'))
})
