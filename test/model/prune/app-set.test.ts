import { describe, expect, it } from 'vitest'
import { readAppSet } from '../../../src/model/prune/app-set.ts'
import { repositoryProblem, revisionProblem } from '../../../src/model/prune/source.ts'
import { appSetFaults, parsed } from '../../support/releases.ts'

const application = (more = ''): string =>
  `applications:\n- name: edge\n  source: {repoURL: https://example.org/ops.git, revision: main, releaseFile: deploy/releases.yaml}\n${more}`

const set = (text: string) => {
  const result = readAppSet(parsed(text))
  if (!result.ok) throw new Error(JSON.stringify(result.faults))
  return result.appSet
}

describe('the app set file', () => {
  it('gives every setting its default (prune 2.2)', () => {
    expect(set(application()).applications).toEqual([
      {
        name: 'edge',
        source: { repoURL: 'https://example.org/ops.git', revision: 'main', releaseFile: 'deploy/releases.yaml' },
        allow: { hostPaths: [], secrets: [], configs: [], volumes: [], networks: [] },
        syncPolicy: {
          automated: false,
          intervalMs: 180_000,
          wait: false,
          timeoutMs: 300_000,
          historyMax: 10,
          prune: false,
          pruneVolumes: false,
          pruneResources: false,
          pruneFirst: false,
        },
        driftDetection: 'manifest',
      },
    ])
  })

  it('takes what is set', () => {
    const [one] = set(
      application(
        '  allow: {hostPaths: [/srv], networks: [public]}\n  destination: {swarm: ""}\n  driftDetection: live\n' +
          '  syncPolicy: {automated: true, interval: 10s, historyMax: 0, prune: true, pruneVolumes: true, pruneFirst: true}\n',
      ),
    ).applications
    expect(one).toMatchObject({
      allow: { hostPaths: ['/srv'], networks: ['public'] },
      driftDetection: 'live',
      syncPolicy: { automated: true, intervalMs: 10_000, historyMax: 0, prune: true, pruneVolumes: true, pruneFirst: true },
    })
  })

  it('an empty list is a set, a missing or null one is a fault, so that a misspelt key never reads as nothing (prune R18, case C1)', () => {
    expect(set('applications: []').applications).toEqual([])
    for (const text of ['{}', 'applications:', 'application: []', 'applications: {}', '[]', '"<html>maintenance</html>"']) {
      expect(appSetFaults(text), text).not.toEqual([])
    }
  })

  it('finds every fault at once, each with its place and what to do', () => {
    const text = application(
      '  syncPolicy: {intervall: 3m, pruneVolumes: true}\n- name: edge\n  self: true\n  registryAuth: x\n  source: {repoURL: /srv/ops, revision: -x, chart: {}}\n',
    )
    expect(appSetFaults(text)).toEqual([
      '4:16: unknown key "intervall". Did you mean interval?',
      '4:45: pruneVolumes needs prune. Add prune: true, or take it out',
      '6:3: self: not supported yet. Take it out',
      '7:3: registryAuth: not supported yet. Take it out',
      '8:3: applications[1].source.releaseFile is missing. Name the release file in the repository',
      '8:41: "-x" is no revision. Name a branch, a tag, or a whole commit id',
      '8:45: chart: not supported yet. Take it out',
    ])
  })

  it('refuses two applications of one name', () => {
    const twice = `${application()}- name: edge\n  source: {repoURL: /srv/ops, revision: main, releaseFile: r.yaml}\n`
    expect(appSetFaults(twice)).toEqual(['4:9: there is an application "edge" already. Names must differ'])
    expect(appSetFaults(twice.replace('- name: edge\n  source: {repoURL: /srv', '- name: other\n  source: {repoURL: /srv'))).toEqual([])
  })

  it.each(['Edge', 'a/b', 'a:b', 'a b', '-a', '', 'x'.repeat(64)])('refuses the name "%s" (prune R3)', (name) => {
    expect(appSetFaults(application().replace('name: edge', `name: "${name}"`))).toHaveLength(1)
  })

  it('refuses a release file outside of its repository', () => {
    for (const path of ['../x', '/etc/passwd', 'a/../../x', '.']) {
      expect(appSetFaults(application().replace('deploy/releases.yaml', path)), path).toHaveLength(1)
    }
    expect(set(application().replace('deploy/releases.yaml', './a/../b.yaml')).applications[0]?.source.releaseFile).toBe('b.yaml')
  })

  it('refuses a repository with a credential in it, and does not repeat it', () => {
    const faults = appSetFaults(application().replace('https://', 'https://bob:hunter22@'))
    expect(faults).toHaveLength(1)
    expect(faults[0]).not.toMatch(/hunter22|bob/)
  })

  it.each(['http://example.org/x', 'ext::sh -c id', 'file:///srv', 'git@host:x', '--upload-pack=x', 'https://example.org', '/srv/../etc'])(
    'refuses the repository %s',
    (url) => expect(repositoryProblem(url)).not.toBeNull(),
  )

  it.each(['--upload-pack=id', 'a..b', 'a b', 'HEAD^', 'a@{1}', '/x', 'x.lock', 'a:b', ''])('refuses the revision "%s"', (revision) =>
    expect(revisionProblem(revision)).not.toBeNull(),
  )

  it.each(['main', 'release/1.2', 'v1.0', 'refs/heads/main', 'a'.repeat(40)])('takes the revision %s', (revision) =>
    expect(revisionProblem(revision)).toBeNull(),
  )
})
