import { describe, expect, it } from 'vitest'
import { changesBetween } from '../../../src/model/prune/diff/changes.ts'
import type { Observed, Seen, SeenNetwork, SeenObject } from '../../../src/model/prune/diff/observed.ts'
import { planText } from '../../../src/model/prune/diff/plan-text.ts'
import { planRelease, type ReleasePlan } from '../../../src/model/prune/diff/plan.ts'
import type { JsonMap } from '../../../src/model/prune/document.ts'
import type { FileObjectSpec, ReleaseObjects } from '../../../src/model/prune/swarm/types.ts'
import { rendered } from '../../support/releases.ts'

const compose = `services:
  web: {image: "web:1", environment: {DB_PASSWORD: hunter22, LEVEL: info}, networks: [back], configs: [site], secrets: [token], ports: ["80:80"]}
networks: {back: {driver_opts: {a: b}}, pub: {external: true, name: public}}
configs: {site: {file: c}}
secrets: {token: {file: s}}
`
const files = { c: 'content', s: 'secret-content' }
const wants = async (text = compose, more = files): Promise<ReleaseObjects> =>
  (await rendered([text], { files: more, stamp: { uid: 'u1' } })).objects

const seen = <T>(list: readonly T[]): Seen<T> => ({ ok: true, list })
const fileObject = (one: FileObjectSpec, withData: boolean): SeenObject => ({
  ID: `id-${one.Name}`,
  Spec: {
    Name: one.Name,
    Labels: { ...one.Labels },
    ...(withData && { Data: Buffer.from(one.Data.reveal()).toString('base64') }),
  },
})

/** What an Engine would tell after all of it was made. */
const made = (objects: ReleaseObjects): Observed => ({
  services: seen(
    objects.services.map((one) => {
      const spec = JSON.parse(JSON.stringify(one)) as JsonMap & { TaskTemplate: { Networks: { Target: string }[] } }
      for (const network of spec.TaskTemplate.Networks) network.Target = `id-${network.Target}`
      return { ID: `id-${one.Name}`, Spec: spec }
    }),
  ),
  networks: seen(
    objects.networks.map((one): SeenNetwork => ({
      ...(JSON.parse(JSON.stringify(one)) as JsonMap),
      Id: `id-${one.Name}`,
      Name: one.Name,
      Options: { ...one.Options, 'com.docker.network.driver.overlay.vxlanid_list': '4097' },
      IPAM: { Driver: 'default', Config: [{ Subnet: '10.0.1.0/24', Gateway: '10.0.1.1' }] },
    })),
  ),
  configs: seen(objects.configs.map((one) => fileObject(one, true))),
  secrets: seen(objects.secrets.map((one) => fileObject(one, false))),
})
const nothing: Observed = { services: seen([]), networks: seen([]), configs: seen([]), secrets: seen([]) }

const actions = (plan: ReleasePlan): string[] => plan.entries.map((one) => `${one.action} ${one.kind} ${one.name}`)
const changed = (plan: ReleasePlan, name: string) => plan.entries.find((one) => one.name === name)?.changes

describe('the plan of a release', () => {
  it('creates what is not there', async () => {
    expect(actions(planRelease(await wants(), nothing, 'u1'))).toEqual([
      'create network app_back',
      'create config app_site',
      'create secret app_token',
      'create service app_web',
    ])
  })

  it('changes nothing that is as it should be, whatever the Engine adds', async () => {
    const plan = planRelease(await wants(), made(await wants()), 'u1')
    expect(new Set(plan.entries.map((one) => one.action))).toEqual(new Set(['unchanged']))
  })

  it('names each field that differs, and no value that looks like a secret', async () => {
    const next = compose.replace('web:1', 'web:2').replace('hunter22', 'hunter33').replace('info', 'debug').replace('"80:80"', '"81:80"')
    const plan = planRelease(await wants(next), made(await wants()), 'u1')
    expect(changed(plan, 'app_web')).toEqual([
      { field: 'EndpointSpec.Ports.80:80/tcp', from: 'ingress', to: null },
      { field: 'EndpointSpec.Ports.81:80/tcp', from: null, to: 'ingress' },
      { field: 'Labels.com.docker.stack.image', from: 'web:1', to: 'web:2' },
      { field: 'Env.DB_PASSWORD', from: '***', to: '***' },
      { field: 'Env.LEVEL', from: 'info', to: 'debug' },
      { field: 'Image', from: 'web:1', to: 'web:2' },
    ])
    expect(actions(plan)).toContain('update service app_web')
    expect(JSON.stringify(plan) + planText(plan)).not.toMatch(/hunter|secret-content/)
  })

  it('takes an image with its digest for the image that was asked for, and no other', async () => {
    const observed = made(await wants())
    const container = (of: Observed): JsonMap =>
      ((of.services.ok ? (of.services.list[0]?.Spec['TaskTemplate'] ?? {}) : {}) as JsonMap)['ContainerSpec'] as JsonMap
    container(observed)['Image'] = `web:1@sha256:${'a'.repeat(64)}`
    expect(actions(planRelease(await wants(), observed, 'u1'))).toContain('unchanged service app_web')
    container(observed)['Image'] = `web:10@sha256:${'a'.repeat(64)}`
    expect(actions(planRelease(await wants(), observed, 'u1'))).toContain('update service app_web')
  })

  it('says that a network and the content of a config can never be changed', async () => {
    const next = compose.replace('{a: b}', '{a: c}')
    const plan = planRelease(await wants(next, { ...files, c: 'other' }), made(await wants()), 'u1')
    expect(actions(plan)).toEqual([
      'blocked network app_back',
      'blocked config app_site',
      'unchanged secret app_token',
      'unchanged service app_web',
    ])
    expect(changed(plan, 'app_site')).toEqual([{ field: 'content', from: '7 bytes', to: '5 other bytes' }])
    const labelled = compose.replace('{file: c}', '{file: c, labels: {a: b}}')
    expect(actions(planRelease(await wants(labelled), made(await wants()), 'u1'))).toContain('update config app_site')
  })

  it('touches nothing of the same name that is not of this release (case B12)', async () => {
    for (const uid of ['u2', null]) {
      const plan = planRelease(await wants(), made(await wants()), uid)
      expect(new Set(plan.entries.map((one) => one.action))).toEqual(new Set(['taken']))
    }
    const upper = made(await wants())
    if (upper.services.ok) for (const one of upper.services.list) Object.assign(one.Spec, { Name: 'APP_WEB', Labels: {} })
    expect(actions(planRelease(await wants(), upper, 'u1'))).toContain('taken service app_web')
  })

  it('names as candidates what it made and no file declares, and only reports what merely carries its name (prune R7, R60)', async () => {
    const observed = made(await wants(`${compose.replace('services:\n', 'services:\n  old: {image: x, networks: [back]}\n')}`))
    const stranger: SeenObject = { ID: 's', Spec: { Name: 'app_byhand', Labels: { 'com.docker.stack.namespace': 'app' } } }
    const other: SeenObject = { ID: 'o', Spec: { Name: 'else', Labels: {} } }
    const services = seen([...(observed.services.ok ? observed.services.list : []), stranger, other])
    expect(actions(planRelease(await wants(), { ...observed, services }, 'u1')).slice(3)).toEqual([
      'unmanaged service app_byhand',
      'delete service app_old',
      'unchanged service app_web',
    ])
  })

  it('concludes nothing of a kind that could not be listed (I5)', async () => {
    const failed = { ok: false, why: 'the Engine did not answer' } as const
    const plan = planRelease(await wants(), { ...made(await wants()), services: failed, networks: failed }, 'u1')
    expect(actions(plan)).toEqual([
      'unknown network app_back',
      'unchanged config app_site',
      'unchanged secret app_token',
      'unknown service app_web',
    ])
    expect(plan.unknown.map((one) => one.kind)).toEqual(['network', 'service'])
    expect(plan.missing).toEqual([])
  })

  it('names external things that the Swarm does not have', async () => {
    const text = compose.replace('networks: [back]', 'networks: [back, pub]')
    expect(planRelease(await wants(text), nothing, 'u1').missing).toEqual([{ kind: 'network', name: 'public' }])
    const there = { ...nothing, networks: seen<SeenNetwork>([{ Id: 'p', Name: 'public' }]) }
    expect(planRelease(await wants(text), there, 'u1').missing).toEqual([])
  })

  it('is shown with what changes first, and what does not change only counted', async () => {
    const plan = planRelease(await wants(compose.replace('web:1', 'web:2')), { ...made(await wants()), secrets: seen([]) }, 'u1')
    expect(planText(plan)).toBe(
      [
        'release app: 1 create, 1 update, 2 unchanged',
        '+ create    secret app_token',
        '~ update    service app_web',
        '              Labels.com.docker.stack.image: web:1 -> web:2',
        '              Image: web:1 -> web:2',
        '',
      ].join('\n'),
    )
  })

  it.each(['API_KEY', 'TOKEN', 'db_passwd', 'SENTRY_DSN', 'AWS_SECRET_ACCESS_KEY'])('masks the variable %s', (name) => {
    expect(changesBetween({ Env: { [name]: '=a' } }, { Env: { [name]: '=b' } })).toEqual([{ field: `Env.${name}`, from: '***', to: '***' }])
  })
})
