import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sandbox, type Result, type Sandbox } from './run-cli.ts'

let box: Sandbox
let folder: string
beforeEach(() => {
  // Nothing answers there: the command asks nobody.
  box = sandbox('http://127.0.0.1:9')
  folder = join(box.root, 'repository')
})
afterEach(() => box.remove())

const put = (files: Record<string, string>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}
const validate = (...words: string[]): Promise<Result> => box.run(['prune', 'validate', ...words])

const releases = 'releases:\n- name: web\n  compose: [compose.yml]\n  values: [values.yml]\n'
const compose = 'services:\n  web: {image: "web:${TAG}", configs: [site]}\nconfigs: {site: {file: ../shared/site.conf}}\n'

describe('prune validate', () => {
  it('says what the releases of a good file are made of, and ends with 0', async () => {
    put({ 'deploy/releases.yaml': releases, 'deploy/compose.yml': compose, 'deploy/values.yml': 'TAG: 1\n', 'shared/site.conf': 'x' })
    expect(await validate('--file', 'deploy/releases.yaml')).toEqual({
      status: 0,
      out: 'deploy/releases.yaml: ok, releases: web (1 service, 1 network, 1 config)\n',
      err: '',
    })
  })

  it('ends with 2 and shows every fault of every file with line, column and remedy, as seen from where it is run', async () => {
    put({
      'deploy/releases.yaml': `${releases}- name: db\n  compose: [gone.yml]\n`,
      'deploy/compose.yml': 'services:\n  web:\n    image: "web:${TAG}"\n    build: .\n',
      'deploy/values.yml': 'TAX: 1\n',
      'shared/site.conf': 'x',
      'applications.yaml': 'application: []\n',
    })
    const { status, out } = await validate('--file', 'deploy/releases.yaml', '--file', 'applications.yaml')
    expect(status).toBe(2)
    expect(out.split('\n')).toEqual([
      'deploy/compose.yml:3:12: the variable TAG has no value. Add it to a values file, or write ${TAG:-default}',
      'deploy/compose.yml:4:5: build: a Swarm builds nothing. Name an image',
      'deploy/releases.yaml:6:13: deploy/gone.yml: there is no such file. Paths are read from the folder of this file',
      'deploy/releases.yaml: 3 faults',
      'applications.yaml:1:1: this is neither an app set (applications:) nor a release file (releases:). Write one of these keys at the top',
      'applications.yaml: 1 fault',
      '',
    ])
  })

  it('prints one object with --json, with the same exit code', async () => {
    put({ 'applications.yaml': 'applications:\n- name: x\n' })
    const { status, out, err } = await validate('--file', 'applications.yaml', '--json')
    expect({ status, err }).toEqual({ status: 2, err: '' })
    expect(JSON.parse(out)).toMatchObject({
      version: 1,
      ok: false,
      files: [
        {
          file: 'applications.yaml',
          kind: 'app-set',
          faults: [{ line: 2, column: 3, message: 'applications[0].source must be a mapping of keys to values, and is nothing' }],
        },
      ],
    })
  })

  it('reads nothing outside of the repository, and follows a link within it', async () => {
    writeFileSync(join(box.root, 'outside.yml'), 'services: {web: {image: x}}')
    put({ 'r.yaml': 'releases:\n- {name: web, compose: [link.yml]}\n', 'real.yml': 'services: {web: {image: x}}' })
    symlinkSync('../outside.yml', join(folder, 'link.yml'))
    expect((await validate('--file', 'r.yaml')).out).toMatch(/a link leads out of the folder/)
    put({ 'r2.yaml': 'releases:\n- {name: web, compose: [link2.yml]}\n' })
    symlinkSync('real.yml', join(folder, 'link2.yml'))
    expect((await validate('--file', 'r2.yaml')).status).toBe(0)
    put({ 'r3.yaml': 'releases:\n- {name: web, compose: [../outside.yml]}\n' })
    expect((await validate('--file', 'r3.yaml')).status).toBe(2)
  })

  it('refuses two releases that would make the same object (prune R54, R80)', async () => {
    const two = (name: string): Record<string, string> => ({
      'r.yaml': 'releases:\n- {name: a, compose: [a.yml]}\n- {name: b, compose: [b.yml]}\n',
      'a.yml': 'services: {web: {image: x, networks: [net]}}\nnetworks: {net: {name: shared}}\n',
      'b.yml': `services: {web: {image: x, networks: [net]}}\nnetworks: {net: {name: ${name}}}\n`,
    })
    put(two('SHARED'))
    expect((await validate('--file', 'r.yaml')).out).toMatch(
      /^r\.yaml:3:10: the release b would make the network "SHARED", which is of the release a\./,
    )
    put(two('other'))
    expect((await validate('--file', 'r.yaml')).status).toBe(0)
  })

  it('needs a file, and says which is not there', async () => {
    expect((await validate()).status).toBe(2)
    expect(await validate('--file', 'no.yaml')).toMatchObject({ status: 2, out: 'no.yaml:1:1: there is no such file\nno.yaml: 1 fault\n' })
  })

  it('shows no value of a secret or a variable in any fault', async () => {
    put({
      'r.yaml': 'releases:\n- {name: web, compose: [c.yml], values: [v.yml]}\n',
      'c.yml': 'services: {web: {image: x, deploy: {replicas: "${PW}"}, env_file: e}}\nsecrets: {s: {file: s.txt}}\n',
      'v.yml': 'PW: hunter22\n',
      e: 'bad name=hunter22\n',
      's.txt': '',
    })
    const { out, err, status } = await validate('--file', 'r.yaml')
    expect(status).toBe(2)
    expect(out + err).not.toContain('hunter22')
  })
})
