import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const files = (folder: string): string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.ts'))
    .map((name) => `./${folder}/${name}`)

/** The packages that a fresh process loads for these modules, at once and by the imports behind them. */
const packagesOf = (modules: string[]): string[] => {
  const script = `
    import { registerHooks } from 'node:module'
    const found = new Set()
    registerHooks({
      resolve(specifier, context, next) {
        const inPackage = context.parentURL?.includes('/node_modules/')
        if (!inPackage && !/^(node:|[./]|file:|data:)/.test(specifier)) found.add(specifier)
        return next(specifier, context)
      },
    })
    for (const module of ${JSON.stringify(modules)}) await import(module)
    console.log(JSON.stringify([...found].sort()))`
  const output = execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', script], { cwd: root, encoding: 'utf8' })
  return JSON.parse(output) as string[]
}

describe('what the command line loads', () => {
  it('is commander and nothing else but for serve: no server, no database driver', () => {
    const commands = files('src/cli').filter((file) => file !== './src/cli/serve.ts')
    expect(
      packagesOf([...commands, ...files('src/cli/support'), './src/providers/process/enter.ts', './src/providers/docker/enter.ts']),
    ).toEqual(['commander'])
  }, 20_000)

  it('would show more if there were more', () => {
    expect(packagesOf(['yaml', './src/cli/main.ts'])).toEqual(['commander', 'yaml'])
  }, 20_000)
})
