import { describe, expect, it } from 'vitest'
import { rendered, renderFaults, service } from '../support/releases.ts'

const web = (more: string): string => `services:\n  web:\n    image: web:1\n${more.replace(/^(?=.)/gm, '    ')}`
const said = (faults: readonly string[]): string[] => faults.map((one) => one.replace(/^[^ ]+ /, ''))

describe('a release from Compose files', () => {
  it.each([
    'build: .',
    'cgroup_parent: x',
    'container_name: x',
    'credential_spec: {registry: x}',
    'depends_on: [db]',
    'devices: [/dev/x]',
    'domainname: x',
    'expose: [80]',
    'external_links: [x]',
    'ipc: host',
    'links: [x]',
    'mac_address: x',
    'network_mode: host',
    'pid: host',
    'privileged: true',
    'restart: always',
    'security_opt: [x]',
    'shm_size: 1g',
    'tmpfs: /run',
    'userns_mode: host',
    'extends: {service: x}',
    'mem_limit: 5m',
    'cpus: 1',
    'networks: {default: {ipv4_address: 10.0.0.5}}',
    'volumes: [{type: bind, source: /a, target: /b, consistency: cached}]',
    'volumes: [{type: npipe, source: /a, target: /b}]',
    'ports: ["127.0.0.1:80:80"]',
    'volumes: ["data:/x:z"]',
    'volumes: ["./here:/x"]',
    'volumes: ["~/here:/x"]',
  ])('refuses "%s" by name, because a Swarm would ignore it or mean something else (decisions rule 10)', async (line) => {
    const faults = await renderFaults([web(`${line}\n`)])
    expect(faults).toHaveLength(1)
    expect(faults[0]).toMatch(/^a\.yml:4:\d+: .+\. .+/)
  })

  it('says every fault of a file with its place, and what to do', async () => {
    const text = web(
      'imag: x\nports: [80, {target: x}]\ndeploy: {replicas: "${MANY}", resources: {limits: {memory: 5}}}\nhealthcheck: {interval: 5}\nnetworks: 5\n',
    )
    expect(await renderFaults([`${text}  "bad name": {image: x}\nnets: {}\n`], { values: 'MANY: many' })).toEqual([
      'a.yml:4:5: unknown key "imag". Did you mean image?',
      'a.yml:5:26: services.web.ports[1].target must be a whole number, and is a text',
      'a.yml:6:24: what the variable gives is no value for this key. Set it to a number, or to true or false',
      'a.yml:6:64: services.web.deploy.resources.limits.memory must be a text, and is a number',
      'a.yml:7:29: services.web.healthcheck.interval must be a text, and is a number',
      'a.yml:8:15: services.web.networks must be a list or a mapping, and is a number',
      'a.yml:9:3: "bad name" is no name. Use letters, digits, ".", "_" and "-"',
      'a.yml:10:1: unknown key "nets". Take it out',
    ])
  })

  it('refuses what refers to nothing', async () => {
    const text = web('networks: [net]\nvolumes: ["vol:/v"]\nconfigs: [c]\nsecrets: [s]\n')
    expect(said(await renderFaults([text]))).toEqual([
      'there is no network "net". Declare it under networks, at the top of the file',
      'there is no volume "vol". Declare it under volumes, at the top of the file',
      'there is no config "c". Declare it under configs, at the top of the file',
      'there is no secret "s". Declare it under secrets, at the top of the file',
    ])
  })

  it('refuses names that a Swarm would refuse half-way through (prune R79, R80)', async () => {
    const long = 'x'.repeat(60)
    expect((await renderFaults([`services:\n  ${long}: {image: x}\n`])).join()).toMatch(/has 64 characters; a Swarm takes 63/)
    expect(await renderFaults([`services:\n  ${long.slice(1)}: {image: x}\n`])).toEqual([])
    expect((await renderFaults(['services:\n  web: {image: x}\n  Web: {image: x}\n'])).join()).toMatch(/compares without case/)
    const twins = 'services:\n  web: {image: x}\nconfigs:\n  a: {file: ./f, name: same}\n  b: {file: ./f, name: SAME}\n'
    expect((await renderFaults([twins], { files: { f: 'x' } })).join()).toMatch(/compares without case/)
  })

  it('refuses labels that say whose a thing is', async () => {
    for (const label of ['leasehold.uid', 'Leasehold.claim', 'com.docker.stack.namespace', 'leasehold_ref']) {
      expect(await renderFaults([web(`deploy: {labels: {${label}: x}}\n`)]), label).toHaveLength(1)
      expect(await renderFaults([`${web('networks: [net]\n')}networks: {net: {labels: ["${label}=x"]}}\n`]), label).toHaveLength(1)
    }
    expect(await renderFaults([web('deploy: {labels: {leaseholder: x}}\n')])).toEqual([])
  })

  it('reads files beside the first Compose file, never out of the repository, and says which is missing', async () => {
    const text = `${web('env_file: e.env\nconfigs: [c]\n')}configs: {c: {file: sub/c.txt}}\n`
    const { objects } = await rendered([text], { files: { 'e.env': 'A=1\nB=\nC\nD\n', 'sub/c.txt': 'hi' }, values: 'B: b\nC: c' })
    expect(service(objects, 'app_web').TaskTemplate.ContainerSpec.Env).toEqual(['A=1', 'B=b', 'C=c'])
    expect(Buffer.from(objects.configs[0]?.Data.reveal() ?? []).toString()).toBe('hi')
    expect(await renderFaults([text])).toEqual([
      'a.yml:4:15: e.env: there is no such file. Paths are read from the folder of the first Compose file',
    ])
    expect((await renderFaults([text.replace('sub/c.txt', '../c.txt')], { files: { 'e.env': '' } })).join()).toMatch(
      /leads out of the repository/,
    )
    expect((await renderFaults([text.replace('sub/c.txt', '/etc/passwd')], { files: { 'e.env': '' } })).join()).toMatch(
      /leads out of the repository/,
    )
  })

  it('takes nothing from the environment: a name without a value stays one', async () => {
    const { objects } = await rendered([web('environment: [PATH, HOME=]\n')])
    expect(service(objects, 'app_web').TaskTemplate.ContainerSpec.Env).toEqual(['HOME=', 'PATH'])
  })

  it('shows the content of a secret in no text and no JSON', async () => {
    const text = `${web('secrets: [s]\n')}secrets: {s: {file: s.txt}}\n`
    const { objects } = await rendered([text], { files: { 's.txt': 'hunter22' } })
    expect(JSON.stringify(objects)).not.toMatch(/hunter22|aHVudGVyMjI/)
    expect(Buffer.from(objects.secrets[0]?.Data.reveal() ?? []).toString()).toBe('hunter22')
  })

  it('reaches outside of itself only where its application may (prune 2.2)', async () => {
    const text = `${web('networks: [pub]\nvolumes: [/srv/data:/d, "ext:/e"]\nsecrets: [s]\n')}networks: {pub: {external: true, name: public}}\nvolumes: {ext: {external: true}}\nsecrets: {s: {external: true}}\n`
    const none = { hostPaths: [], secrets: [], configs: [], volumes: [], networks: [] }
    expect(said(await renderFaults([text], { allow: none }))).toEqual([
      'the application may not reach /srv/data of the nodes. If it may, add "/srv/data" to allow.hostPaths of the application',
      'the network "public" is not of this release, and the application may not reach it. If it may, add "public" to allow.networks of the application',
      'the volume "ext" is not of this release, and the application may not reach it. If it may, add "ext" to allow.volumes of the application',
      'the secret "s" is not of this release, and the application may not reach it. If it may, add "s" to allow.secrets of the application',
    ])
    const all = { ...none, hostPaths: ['/srv'], secrets: ['s'], volumes: ['ext'], networks: ['public'] }
    expect(await renderFaults([text], { allow: all })).toEqual([])
    for (const path of ['/srv2/data', '/srv/../etc', '/etc']) {
      expect(await renderFaults([text.replace('/srv/data', path)], { allow: all }), path).toHaveLength(1)
    }
  })

  it('stamps every object with what never changes, the same in every revision (prune 7.1, R64)', async () => {
    const text = `${web('networks: [net]\nvolumes: ["data:/d"]\nconfigs: [c]\nsecrets: [s]\n')}networks: {net: }\nvolumes: {data: }\nconfigs: {c: {file: f}}\nsecrets: {s: {file: f}}\n`
    const options = { files: { f: 'x' }, stamp: { uid: 'u1' } }
    const { objects } = await rendered([text], options)
    const mount = service(objects, 'app_web').TaskTemplate.ContainerSpec.Mounts?.[0]
    const labels = {
      service: service(objects, 'app_web').Labels,
      network: objects.networks[0]?.Labels,
      config: objects.configs[0]?.Labels,
      secret: objects.secrets[0]?.Labels,
      volume: mount?.VolumeOptions?.Labels,
    }
    for (const [kind, found] of Object.entries(labels)) {
      expect(found, kind).toMatchObject({ 'com.docker.stack.namespace': 'app', 'leasehold.uid': 'u1' })
      expect(found?.['leasehold.claim'], kind).toMatch(/^[0-9a-f]{24}$/)
      expect('leasehold.created' in (found ?? {}), kind).toBe(kind === 'config' || kind === 'secret')
    }
    expect(new Set(Object.values(labels).map((one) => one?.['leasehold.claim'])).size).toBe(5)
    expect((await rendered([text.replace('web:1', 'web:2')], options)).objects.networks).toEqual(objects.networks)
  })

  it('makes only the networks that a service is in, and every config and secret', async () => {
    const text = `${web('')}networks: {unused: }\nconfigs: {c: {file: f}}\n`
    const { objects } = await rendered([text], { files: { f: 'x' } })
    expect(objects.networks.map((one) => one.Name)).toEqual(['app_default'])
    expect(objects.configs.map((one) => one.Name)).toEqual(['app_c'])
  })
})

describe('several Compose files', () => {
  const base = web(
    'command: one two\nlabels: {a: "1"}\nenvironment: {A: "1", B: "2"}\ndns: [1.1.1.1]\nports: ["80:80", "81:81"]\nvolumes: ["first:/v", "second:/w"]\nsecrets: [{source: s, target: t}]\n' +
      'tty: true\nhealthcheck: {test: "true", retries: 3}\nnetworks: {net: {aliases: [p]}}\nlogging: {driver: json-file, options: {max-size: 1m, max-file: "3"}}\n' +
      'deploy: {replicas: 3, labels: {q: "1"}, update_config: {parallelism: 2, delay: 5s}}\n',
  )
  const top = 'volumes: {first: {driver: x}, second: }\nsecrets: {s: {external: true}}\nnetworks: {net: {driver_opts: {a: b}}}\n'
  const merged = async (over: string, overTop = '') =>
    (await rendered([`${base}${top}`, `services:\n  web:\n${over.replace(/^(?=.)/gm, '    ')}${overTop}`])).compose

  it('join maps, append lists, and replace what is at one place, as docker stack deploy does', async () => {
    const { services } = await merged(
      'command: [three]\nlabels: {a: "", b: x}\nenvironment: [A=9, C=3]\ndns: 2.2.2.2\nports: ["79:79", "80:8080"]\nvolumes: ["third:/v"]\nsecrets: [{source: s, uid: "5"}]\n' +
        'networks: {net: {aliases: [z]}}\nlogging: {options: {max-size: 2m}}\ndeploy: {replicas: 0, labels: {r: "2"}, update_config: {parallelism: 0}}\n',
      'volumes: {third: }\n',
    )
    expect(services['web']).toMatchObject({
      command: ['three'],
      labels: { a: '', b: 'x' },
      environment: { A: '9', B: '2', C: '3' },
      dns: ['1.1.1.1', '2.2.2.2'],
      ports: [{ published: 79 }, { published: 80, target: 8080 }, { published: 81 }],
      volumes: [
        { source: 'third', target: '/v' },
        { source: 'second', target: '/w' },
      ],
      secrets: [{ source: 's', uid: '5' }],
      networks: { net: { aliases: ['z'] } },
      logging: { driver: 'json-file', options: { 'max-size': '2m', 'max-file': '3' } },
      deploy: { replicas: 0, labels: { q: '1', r: '2' }, update_config: { parallelism: 0, delay: 5_000_000_000 } },
    })
    expect(services['web']?.secrets?.[0]).not.toHaveProperty('target')
  })

  it('replace what stands at the top as a whole', async () => {
    const { networks, volumes } = await merged('dns: 2.2.2.2\n', 'networks: {net: {internal: true}}\nvolumes: {first: }\n')
    expect(networks['net']).toEqual({ external: false, internal: true })
    expect(volumes['first']).toEqual({ external: false })
  })

  it.each([
    'tty: false',
    'environment: {A: ""}',
    'environment: [A]',
    'deploy: {update_config: {delay: 0s}}',
    'healthcheck: {test: "false"}',
  ])('refuse the override "%s", which docker stack deploy would drop or garble without a word', async (line) => {
    const faults = await renderFaults([`${base}${top}`, `services:\n  web:\n    ${line}\n`])
    expect(faults).toHaveLength(1)
    expect(faults[0]).toMatch(/^b\.yml:3:\d+: docker stack deploy /)
  })
})
