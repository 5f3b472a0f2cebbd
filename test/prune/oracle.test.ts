/**
 * The oracle of the conversion: what `docker stack deploy` makes of the same files on a real Swarm, read back from the Engine. Every field that we
 * would send must be there, and every field that is there must be one that we would send, or a default of the Engine.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { byText } from '../../src/model/prune/compose/shapes.ts'
import type { Json, JsonMap } from '../../src/model/prune/document.ts'
import { planRelease } from '../../src/model/prune/diff/plan.ts'
import type { Observed, Seen, SeenNetwork, SeenObject } from '../../src/model/prune/diff/observed.ts'
import type { ReleaseObjects } from '../../src/model/prune/swarm/types.ts'
import { folderTree } from '../../src/prune/folder-tree.ts'
import { renderRelease } from '../../src/prune/render-release.ts'
import { parsed } from '../support/releases.ts'
import { serviceOr } from '../support/services/skip.ts'
import { startSwarm, swarmAvailable, type Swarm } from '../support/services/swarm.ts'

const folder = join(import.meta.dirname, 'fixtures/full')

const nameOf = (one: SeenObject): string => one.Spec['Name'] as string

/** Every value that is not empty, by its path; lists in order. */
const leaves = (value: unknown, path = ''): Map<string, Json> => {
  if (typeof value === 'object' && value !== null) {
    return new Map(Object.entries(value).flatMap(([key, one]) => [...leaves(one, path === '' ? key : `${path}.${key}`)]))
  }
  return new Map(value === undefined || value === null || value === false || value === 0 ? [] : [[path, value as Json]])
}

/** What an Engine writes where nobody said anything. */
const defaults: ReadonlyMap<string, Json> = new Map<string, Json>([
  ['TaskTemplate.ContainerSpec.StopGracePeriod', 10e9],
  ['TaskTemplate.ContainerSpec.Isolation', 'default'],
  ['TaskTemplate.RestartPolicy.Condition', 'any'],
  ['TaskTemplate.RestartPolicy.Delay', 5e9],
  ['TaskTemplate.Runtime', 'container'],
  ['Mode.Replicated.Replicas', 1],
  ['EndpointSpec.Mode', 'vip'],
  ...['UpdateConfig', 'RollbackConfig'].flatMap((one): [string, Json][] => [
    [`${one}.Parallelism`, 1],
    [`${one}.FailureAction`, 'pause'],
    [`${one}.Monitor`, 5e9],
    [`${one}.Order`, 'stop-first'],
  ]),
])

/** Ids for names, and lists without order in one. */
const comparable = (spec: JsonMap, names: ReadonlyMap<string, string>): Map<string, Json> => {
  const copy = JSON.parse(JSON.stringify(spec)) as {
    TaskTemplate: {
      Networks: { Target: string }[]
      ContainerSpec: Record<'Secrets' | 'Configs', JsonMap[] | undefined> & { Mounts?: { Target: string }[] }
    }
  }
  for (const one of copy.TaskTemplate.Networks) one.Target = names.get(one.Target) ?? one.Target
  copy.TaskTemplate.Networks.sort((a, b) => (a.Target < b.Target ? -1 : 1))
  copy.TaskTemplate.ContainerSpec.Mounts?.sort((a, b) => (a.Target < b.Target ? -1 : 1))
  for (const kind of ['Secrets', 'Configs'] as const) {
    for (const one of copy.TaskTemplate.ContainerSpec[kind] ?? []) {
      delete one['SecretID']
      delete one['ConfigID']
    }
  }
  return leaves(copy)
}

serviceOr(
  'Docker Swarm',
  swarmAvailable(),
  'apt-get install docker.io iproute2, and run as root',
)('docker stack deploy as the oracle', () => {
  let swarm: Swarm
  beforeAll(async () => {
    swarm = await startSwarm()
    await swarm.docker(['network', 'create', '-d', 'overlay', 'foreign-net'])
    await swarm.docker(['secret', 'create', 'known-secret', '-'], 'x')
  }, 120_000)
  afterAll(async () => await swarm?.stop(), 60_000)

  const render = async (name: string, files: string[], from = folder): Promise<ReleaseObjects> => {
    const releaseFile = parsed('releases: []')
    const release = { name, compose: files, values: [], wave: 0, index: 0 }
    const result = await renderRelease({ tree: folderTree(from), release, stamp: null, allow: null, releaseFile })
    if (!result.ok) throw new Error(JSON.stringify(result.faults))
    return result.objects
  }

  const list = async <T>(path: string): Promise<Seen<T>> => ({ ok: true, list: (await swarm.get(path)) as T[] })
  const observe = async (): Promise<Observed> => ({
    services: await list<SeenObject>('/services'),
    networks: await list<SeenNetwork>('/networks'),
    configs: await list<SeenObject>('/configs'),
    secrets: await list<SeenObject>('/secrets'),
  })
  const all = <T>(seen: Seen<T>): readonly T[] => {
    if (!seen.ok) throw new Error(seen.why)
    return seen.list
  }

  const compare = async (name: string, objects: ReleaseObjects): Promise<void> => {
    const observed = await observe()
    const ofStack = (labels: Json | undefined): boolean => (labels as JsonMap | undefined)?.['com.docker.stack.namespace'] === name
    const names = new Map(all(observed.networks).map((one) => [one.Id, one.Name]))
    const services = all(observed.services).filter((one) => ofStack(one.Spec['Labels']))
    expect(services.map(nameOf).toSorted(byText)).toEqual(objects.services.map((one) => one.Name))
    for (const want of objects.services) {
      const there = comparable(services.find((one) => one.Spec['Name'] === want.Name)?.Spec ?? {}, names)
      const ours = comparable(want as unknown as JsonMap, names)
      for (const [path, value] of ours) expect([path, there.get(path)]).toEqual([path, value])
      for (const [path, value] of there)
        if (!ours.has(path)) expect([want.Name, path, value]).toEqual([want.Name, path, defaults.get(path)])
      expect(ours.size).toBeGreaterThan(4)
    }
    const networks = all(observed.networks).filter((one) => ofStack(one['Labels']))
    expect(networks.map((one) => one.Name).toSorted()).toEqual(objects.networks.map((one) => one.Name).toSorted())
    for (const want of objects.networks) {
      const there = networks.find((one) => one.Name === want.Name) ?? ({} as JsonMap)
      for (const [path, value] of leaves(want)) expect([want.Name, path, leaves(there).get(path)]).toEqual([want.Name, path, value])
      expect({ Internal: there['Internal'], Attachable: there['Attachable'] }).toEqual({
        Internal: want.Internal,
        Attachable: want.Attachable,
      })
      expect(there['Labels']).toEqual(want.Labels)
    }
    for (const kind of ['configs', 'secrets'] as const) {
      const found = all(observed[kind]).filter((one) => ofStack(one.Spec['Labels']))
      expect(found.map(nameOf).toSorted(byText)).toEqual(objects[kind].map((one) => one.Name).toSorted())
      for (const want of objects[kind]) {
        const spec = found.find((one) => one.Spec['Name'] === want.Name)?.Spec ?? {}
        const data = kind === 'configs' ? { Data: Buffer.from(want.Data.reveal()).toString('base64') } : {}
        expect({ ...spec }).toEqual({
          Name: want.Name,
          Labels: want.Labels,
          ...data,
          ...(want.Templating && { Templating: { Name: want.Templating.Name } }),
        })
      }
    }
  }

  it('converts services, networks, configs, secrets and volumes as it does, object by object (decisions rule 10)', async () => {
    await swarm.docker(['stack', 'deploy', '--resolve-image', 'never', '-c', join(folder, 'docker-compose.yml'), 'app'])
    await compare('app', await render('app', ['docker-compose.yml']))
  }, 60_000)

  it('sees no difference to what it made, and sees each change', async () => {
    const observed = await observe()
    const services = all(observed.services)
    // As if it had been made with our stamp, which docker stack deploy does not write.
    const stamp = (labels: Json | undefined): JsonMap => {
      const given = (labels ?? {}) as JsonMap
      return given['com.docker.stack.namespace'] === 'app' ? { ...given, 'leasehold.uid': 'u1' } : given
    }
    for (const one of [...services, ...all(observed.configs), ...all(observed.secrets)]) one.Spec['Labels'] = stamp(one.Spec['Labels'])
    for (const one of all(observed.networks)) one['Labels'] = stamp(one['Labels'])
    const objects = await render('app', ['docker-compose.yml'])
    const marked = <T extends { Labels: Record<string, string> }>(one: T): T => ({
      ...one,
      Labels: { ...one.Labels, 'leasehold.uid': 'u1' },
    })
    const wanted: ReleaseObjects = {
      ...objects,
      services: objects.services.map(marked),
      networks: objects.networks.map(marked),
      configs: objects.configs.map(marked),
      secrets: objects.secrets.map(marked),
    }
    const plan = planRelease(wanted, observed, 'u1')
    expect(plan.entries.filter((one) => one.action !== 'unchanged')).toEqual([])
    expect(plan.entries).toHaveLength(9)
    expect(plan.missing).toEqual([])
    // The negative twin: every leaf of a service, changed, is seen.
    for (const one of services.filter(({ Spec }) => Spec['Name'] === 'app_web')) {
      for (const path of leaves(one.Spec).keys()) {
        if (/\.(?:Runtime|SecretID|ConfigID)$|^Name$/.test(path)) continue
        const changed = JSON.parse(JSON.stringify(one)) as SeenObject
        if (!set(changed.Spec, path)) throw new Error(`no ${path}`)
        const again = planRelease(wanted, { ...observed, services: { ok: true, list: [changed] } }, 'u1')
        const entry = again.entries.find(({ name }) => name === 'app_web')
        if (path !== 'Labels.leasehold.uid') expect([path, entry?.action]).toEqual([path, 'update'])
      }
    }
  }, 60_000)

  it('merges several files as it does', async () => {
    // Without what its versions merge differently.
    const scratch = mkdtempSync(join(tmpdir(), 'leasehold-oracle-'))
    try {
      cpSync(folder, scratch, { recursive: true })
      expect(readFileSync(join(scratch, 'override.yml'), 'utf8')).toContain('own_back2')
      await swarm.docker(['stack', 'rm', 'app'])
      await gone(swarm)
      const both = ['docker-compose.yml', 'override.yml']
      await swarm.docker(['stack', 'deploy', '--resolve-image', 'never', ...both.flatMap((one) => ['-c', join(scratch, one)]), 'app'])
      await compare('app', await render('app', both, scratch))
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  }, 90_000)
})

/** Sets the leaf at a path of `leaves` to something else; names of labels have dots of their own. */
const set = (value: unknown, path: string): boolean => {
  if (typeof value !== 'object' || value === null) return false
  for (const [key, one] of Object.entries(value)) {
    if (key === path) {
      const other = typeof one === 'number' ? one + 1 : typeof one === 'boolean' ? !one : `${String(one)}x`
      Object.assign(value, { [key]: other })
      return true
    }
    if (path.startsWith(`${key}.`) && set(one, path.slice(key.length + 1))) return true
  }
  return false
}

const gone = async (swarm: Swarm): Promise<void> => {
  const deadline = performance.now() + 45_000
  const left = async (): Promise<number> => {
    const filters = encodeURIComponent(JSON.stringify({ label: ['com.docker.stack.namespace=app'] }))
    const [tasks, networks] = await Promise.all([swarm.get(`/tasks?filters=${filters}`), swarm.get(`/networks?filters=${filters}`)])
    return (tasks as unknown[]).length + (networks as unknown[]).length
  }
  while ((await left()) > 0) {
    if (performance.now() > deadline) throw new Error('the stack does not go')
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
