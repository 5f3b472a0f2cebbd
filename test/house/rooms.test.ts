import { execFile } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { importsOf, readsClock } from './imports.ts'
import { rooms, whyForbidden } from './rooms.ts'

const root = join(import.meta.dirname, '..', '..')

describe('the rooms', () => {
  const files = globSync('src/**/*.ts', { cwd: root })
  const read = (file: string): string => readFileSync(join(root, file), 'utf8')

  it('import only what the architecture allows', () => {
    const imports = files.flatMap((file) => importsOf(file, read(file)).map((specifier) => ({ file, specifier })))
    expect(imports.length).toBeGreaterThan(10)
    const wrong = imports.flatMap(({ file, specifier }) => {
      const why = whyForbidden(file, specifier)
      return why === null ? [] : [`${file} imports ${specifier}: ${why}`]
    })
    expect(wrong).toEqual([])
  })

  it('leave the time to the caller inside the model (I4)', () => {
    const wrong = files.filter((file) => file.startsWith('src/model/') && readsClock(file, read(file)))
    expect(wrong).toEqual([])
  })

  it('would not hide a forbidden import or a clock in any form of the syntax', () => {
    const text = `
      import { a } from '../a.ts'
      import type { B } from '../b.ts'
      import '../c.ts'
      export * from '../d.ts'
      export { e } from '../e.ts'
      const f = await import('../f.ts')
      let g: import('../g.ts').G
    `
    expect(importsOf('x.ts', text)).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => `../${name}.ts`))
    expect(readsClock('x.ts', 'const a = new Date()')).toBe(true)
    expect(readsClock('x.ts', 'const a = Date()')).toBe(true)
    expect(readsClock('x.ts', 'const a = new Date(now)')).toBe(false)
  })
})

interface Sample {
  file: string
  specifier: string
}

/** Each room against each other, at two depths, and the exceptions with a negative twin for each. */
const samples: Sample[] = [
  ...rooms.flatMap((from) =>
    rooms
      .filter((to) => to !== from)
      .flatMap((to) => [
        { file: `src/${from}/a.ts`, specifier: `../${to}/x.ts` },
        { file: `src/${from}/deep/a.ts`, specifier: `../../${to}/x.ts` },
        { file: `src/${from}/a.ts`, specifier: `../${to}/deep/x.ts` },
      ]),
  ),
  ...rooms.map((from) => ({ file: `src/${from}/a.ts`, specifier: '../main.ts' })),
  ...rooms.map((from) => ({ file: `src/${from}/a.ts`, specifier: './neighbour.ts' })),
  ...rooms.map((from) => ({ file: `src/${from}/a.ts`, specifier: 'typebox' })),
  ...rooms.map((from) => ({ file: `src/${from}/a.ts`, specifier: 'typebox/value' })),
  ...rooms.map((from) => ({ file: `src/${from}/a.ts`, specifier: 'node:fs' })),
  ...['fastify', '@fastify/swagger', 'kysely', 'pg', 'pino', 'commander'].map((specifier) => ({ file: 'src/cli/a.ts', specifier })),
  ...['../api/x.ts', '../providers/process/index.ts', 'kysely', 'fastify', 'typebox', '../main.ts'].map((specifier) => ({
    file: 'src/cli/serve.ts',
    specifier,
  })),
  { file: 'src/cli/serve/a.ts', specifier: '../../api/x.ts' },
  { file: 'src/engine/a.ts', specifier: '../providers/contract.ts' },
  { file: 'src/engine/deep/a.ts', specifier: '../../providers/contract.ts' },
  { file: 'src/engine/a.ts', specifier: '../providers/process/contract.ts' },
  { file: 'src/engine/a.ts', specifier: '../providers/docker/swarm/x.ts' },
  { file: 'src/prune/a.ts', specifier: '../providers/swarm/x.ts' },
  { file: 'src/prune/a.ts', specifier: '../providers/docker/x.ts' },
  { file: 'src/prune/a.ts', specifier: '../providers/docker/swarm/x.ts' },
  { file: 'src/cli/a.ts', specifier: '../providers/contract.ts' },
  { file: 'src/cli/a.ts', specifier: '../providers/process/enter.ts' },
  { file: 'src/cli/a.ts', specifier: '../providers/process/remove.ts' },
  { file: 'src/cli/a.ts', specifier: '../providers/docker/enter.ts' },
  { file: 'src/cli/a.ts', specifier: '../providers/swarm/enter.ts' },
  { file: 'src/cli/a.ts', specifier: '../providers/docker/enter-main.ts' },
  { file: 'src/cli/a.ts', specifier: '../providers/simulated/cloud.ts' },
  { file: 'src/cli/a.ts', specifier: '../providers/simulated/index.ts' },
  { file: 'src/providers/process/a.ts', specifier: '../contract.ts' },
  { file: 'src/providers/process/a.ts', specifier: './box.ts' },
  { file: 'src/providers/process/a.ts', specifier: '../docker/box.ts' },
  { file: 'src/providers/process/a.ts', specifier: '../../lib/host.ts' },
  { file: 'src/main.ts', specifier: './api/server.ts' },
]

describe('the linter', () => {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-lint-'))
  const findings = new Map<string, string[]>()
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), text)
  }

  /** `src/engine/a.ts` becomes `src/engine/a12.ts`: one sample per file, all in one tree. */
  const fileFor = ({ file }: Sample, index: number): string => (file === 'src/main.ts' ? file : file.replace(/\.ts$/, `${index}.ts`))

  const impure = ['Date.now()', 'Math.random()', 'process.pid', 'performance.now()', 'globalThis.Date', 'fetch("/")']

  beforeAll(async () => {
    copyFileSync(join(root, '.oxlintrc.json'), join(folder, '.oxlintrc.json'))
    samples.forEach((sample, index) => write(fileFor(sample, index), `export { a } from '${sample.specifier}'\n`))
    impure.forEach((expression, index) => {
      for (const room of ['model', 'engine']) write(`src/${room}/impure${index}.ts`, `export const a = ${expression}\n`)
    })
    const oxlint = join(root, 'node_modules', '.bin', 'oxlint')
    const output = await new Promise<string>((resolve) => {
      execFile(oxlint, ['-c', '.oxlintrc.json', '-f', 'json', 'src'], { cwd: folder, maxBuffer: 1 << 26 }, (_error, stdout) =>
        resolve(stdout),
      )
    })
    const { diagnostics } = JSON.parse(output) as { diagnostics: { filename: string; code: string }[] }
    for (const { filename, code } of diagnostics) findings.set(filename, [...(findings.get(filename) ?? []), code])
  })

  it('says of every import what the rule says', () => {
    const differences = samples.flatMap((sample, index) => {
      const file = fileFor(sample, index)
      const caught = (findings.get(file) ?? []).some((code) => code.includes('no-restricted-imports'))
      const why = whyForbidden(file, sample.specifier)
      return caught === (why !== null)
        ? []
        : [`${sample.file} importing ${sample.specifier}: the linter ${caught ? 'forbids' : 'allows'}, the rule: ${why}`]
    })
    expect(differences).toEqual([])
  })

  it('knows forbidden imports and allowed ones among the samples', () => {
    const forbidden = samples.filter((sample) => whyForbidden(sample.file, sample.specifier) !== null)
    expect(forbidden.length).toBeGreaterThan(50)
    expect(samples.length - forbidden.length).toBeGreaterThan(50)
  })

  it('keeps clocks, randomness and the process out of the model, and of the model only', () => {
    const caught = (room: string): string[] => impure.filter((_, index) => (findings.get(`src/${room}/impure${index}.ts`) ?? []).length > 0)
    expect(caught('model')).toEqual(impure)
    expect(caught('engine')).toEqual([])
  })
})
