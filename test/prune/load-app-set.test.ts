import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defaultLimits, openRepository } from '../../src/prune/git/repository.ts'
import { keepLastGood } from '../../src/prune/last-good.ts'
import { loadAppSet, loadReleases, type AppSetPlace } from '../../src/prune/load-app-set.ts'
import { makeRepository, scratchFolder } from '../support/git.ts'
import { memoryTree } from '../support/releases.ts'

let scratch: ReturnType<typeof scratchFolder>
beforeEach(() => void (scratch = scratchFolder()))
afterEach(() => scratch.remove())

const set = (...names: string[]): string =>
  `applications:\n${names.map((name) => `- {name: ${name}, source: {repoURL: /srv/x, revision: main, releaseFile: r.yaml}}\n`).join('')}`
const namesOf = (
  standing: Awaited<ReturnType<ReturnType<typeof keepLastGood<{ appSet: { applications: readonly { name: string }[] } }>>['refresh']>>,
) => standing.good?.value.appSet.applications.map((one) => one.name) ?? null

describe('the app set', { timeout: 120_000 }, () => {
  it('is read from a file, a folder or a repository', async () => {
    const repository = makeRepository(join(scratch.folder, 'repo'))
    const commit = repository.commit({ 'env/apps.yaml': set('a') })
    const opened = openRepository({
      url: repository.folder,
      cache: join(scratch.folder, 'cache'),
      credential: null,
      limits: defaultLimits,
      environment: process.env,
    })
    const places: [AppSetPlace, string | null][] = [
      [{ mode: 'file', path: join(repository.folder, 'env/apps.yaml') }, null],
      [{ mode: 'folder', folder: repository.folder, path: 'env/apps.yaml' }, null],
      [{ mode: 'git', repository: opened, name: repository.folder, revision: 'main', path: 'env/apps.yaml' }, commit],
    ]
    for (const [place, expected] of places) {
      const loaded = await loadAppSet(place)
      expect(loaded.ok && [loaded.value.appSet.applications.map((one) => one.name), loaded.value.commit]).toEqual([['a'], expected])
    }
  })

  it('stands as it was while its file is broken or gone, says so on every try, and goes on once it is well (prune 2.1, R20)', async () => {
    const path = join(scratch.folder, 'apps.yaml')
    const kept = keepLastGood(() => loadAppSet({ mode: 'file', path }))
    expect(await kept.refresh(1)).toMatchObject({ good: null, stale: false, faults: [{ message: 'there is no such file' }] })
    writeFileSync(path, set('a', 'b'))
    const first = await kept.refresh(2)
    expect([namesOf(first), first.changed, first.faults]).toEqual([['a', 'b'], true, []])
    expect((await kept.refresh(3)).changed).toBe(false)
    for (const broken of ['applications:', '<html>', set('a', 'a'), '', 'application: []']) {
      writeFileSync(path, broken)
      const standing = await kept.refresh(4)
      expect([namesOf(standing), standing.stale, standing.changed, standing.good?.loadedAtMs, standing.faults.length > 0]).toEqual([
        ['a', 'b'],
        true,
        false,
        2,
        true,
      ])
    }
    writeFileSync(path, 'applications: []')
    expect(await kept.refresh(6)).toMatchObject({
      good: { loadedAtMs: 6, value: { appSet: { applications: [] } } },
      faults: [],
      stale: false,
    })
  })

  it('stands while a repository can not be fetched, and the failure is no empty set (case C4)', async () => {
    const repository = makeRepository(join(scratch.folder, 'repo'))
    repository.commit({ 'apps.yaml': set('a') })
    const opened = openRepository({
      url: repository.folder,
      cache: join(scratch.folder, 'cache'),
      credential: null,
      limits: defaultLimits,
      environment: process.env,
    })
    const kept = keepLastGood(() => loadAppSet({ mode: 'git', repository: opened, name: 'ops', revision: 'main', path: 'apps.yaml' }))
    expect(namesOf(await kept.refresh(1))).toEqual(['a'])
    renameSync(repository.folder, `${repository.folder}-away`)
    const failed = await kept.refresh(2)
    expect([namesOf(failed), failed.stale, failed.faults.length]).toEqual([['a'], true, 1])
    renameSync(`${repository.folder}-away`, repository.folder)
    repository.commit({ 'apps.yaml': set('a', 'b') })
    expect(namesOf(await kept.refresh(3))).toEqual(['a', 'b'])
  })

  it('is not read through a link that leads out of its folder', async () => {
    const folder = join(scratch.folder, 'published')
    mkdirSync(folder)
    writeFileSync(join(scratch.folder, 'apps.yaml'), set('a'))
    symlinkSync('../apps.yaml', join(folder, 'apps.yaml'))
    const loaded = await loadAppSet({ mode: 'folder', folder, path: 'apps.yaml' })
    expect(loaded.ok ? [] : loaded.faults.map((one) => one.message)).toEqual(['a link leads out of the folder'])
  })
})

describe('a release file', () => {
  const load = (text: string) => loadReleases(memoryTree({ 'deploy/r.yaml': text }), 'deploy/r.yaml')
  const faults = async (text: string): Promise<string[]> => {
    const loaded = await load(text)
    return loaded.ok ? [] : loaded.faults.map((one) => `${one.line}:${one.column}: ${one.message}`)
  }

  it('names its files from its own folder', async () => {
    const loaded = await load('apiVersion: v1\nreleases:\n- {name: web, compose: [c.yml, ../base.yml], values: [v/a.yml], wave: 2}\n')
    expect(loaded.ok && loaded.releases).toEqual([
      { name: 'web', compose: ['deploy/c.yml', 'base.yml'], values: ['deploy/v/a.yml'], wave: 2, index: 0 },
    ])
  })

  it('refuses charts and what belongs to them as not supported yet (decisions rule 10)', async () => {
    expect(await faults('repositories: []\nreleases:\n- {name: web, compose: [c], chart: x}\n')).toEqual([
      '1:1: repositories: not supported yet',
      '3:29: chart: not supported yet',
    ])
  })

  it('refuses two releases that a Swarm takes for one (prune R80)', async () => {
    expect(await faults('releases:\n- {name: web, compose: [c]}\n- {name: Web, compose: [c]}\n')).toEqual([
      '3:10: "Web" and "web" are one name to a Swarm, which compares without case',
    ])
  })

  it.each([
    '{}',
    'releases:',
    'releases: [{name: web}]',
    'releases: [{name: web, compose: []}]',
    'releases: [{compose: [c]}]',
    'releases: [{name: "a b", compose: [c]}]',
    'releases: [{name: w, compose: [../../c]}]',
    'releases: [{name: w, compose: [/c]}]',
    'releases: [{name: w, compose: [c], wave: 1.5}]',
  ])('refuses %s', async (text) => expect(await faults(text)).toHaveLength(1))
})
