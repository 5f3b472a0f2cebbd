import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { tasksOf } from '../simulation/soak/tasks.ts'

const program = fileURLToPath(new URL('./soak.ts', import.meta.url))

describe('the soak', () => {
  it('cuts what it plays into parts that add up, no world twice', () => {
    const tasks = tasksOf({ engine: 1_234, pure: 333_333, seed: 7 }, ['I5', 'I8'])
    const engine = tasks.flatMap((task) => (task.kind === 'engine' ? Array.from({ length: task.count }, (_, i) => task.from + i) : []))
    expect(engine).toEqual(Array.from({ length: 1_234 }, (_, i) => 7 + i))
    const pure = tasks.filter((task) => task.kind === 'pure')
    expect(pure.reduce((sum, task) => sum + task.count, 0)).toBe(333_333)
    expect(new Set(pure.map((task) => task.seed)).size).toBe(pure.length)
  })

  it('plays as many as it is told, and says from which seed on all of them hold', { timeout: 120_000 }, async () => {
    const amounts = {
      LEASEHOLD_SOAK_ENGINE: '6',
      LEASEHOLD_SOAK_PURE: '600',
      LEASEHOLD_SOAK_SEED: '41',
      LEASEHOLD_SOAK_PROCESSES: '2',
      LEASEHOLD_SOAK_LEASES: '0',
      LEASEHOLD_SOAK_LARGE: '2000',
    }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [program], { env: { ...process.env, ...amounts } })
    expect(stderr).toContain('6 of 6 engine worlds, 600 of 600 pure ones')
    expect(stdout).toBe('all of them hold, from seed 41 on\n')
  })

  it('refuses an amount that is none', { timeout: 60_000 }, async () => {
    const run = promisify(execFile)(process.execPath, [program], { env: { ...process.env, LEASEHOLD_SOAK_ENGINE: 'many' } })
    await expect(run).rejects.toMatchObject({ code: 2, stderr: 'LEASEHOLD_SOAK_ENGINE must be a whole number, 0 or more\n' })
  })
})
