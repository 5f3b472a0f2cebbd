/** Where an address came from, and what `doctor` says when it leads nowhere or the token opens nothing. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DoctorCheck } from '../../src/model/wire.ts'
import { startCoordinator, type FakeCoordinator } from './coordinator.ts'
import { sandbox, type Sandbox } from './run-cli.ts'

let coordinator: FakeCoordinator
let box: Sandbox
beforeEach(async () => {
  coordinator = await startCoordinator()
  box = sandbox(coordinator.url)
  mkdirSync(box.data, { recursive: true, mode: 0o700 })
  writeFileSync(join(box.data, 'admin.token'), 'admin-secret\n', { mode: 0o600 })
})
afterEach(async () => {
  box.remove()
  await coordinator.close()
})
const served = (): void => writeFileSync(join(box.data, 'serve.url'), `${coordinator.url}\n`)
const only = (variables: Record<string, string> = {}) => ({ environment: { LEASEHOLD_DATA: box.data, ...variables } })

describe('the address of the coordinator', () => {
  const origin = async (changes: ReturnType<typeof only>): Promise<unknown> =>
    (JSON.parse((await box.run(['config', '--json'], changes)).out) as { name: string; origin: string }[]).find(
      ({ name }) => name === 'url',
    )?.origin

  it('names where it came from: serve.url of the data folder, else the setting of the port', async () => {
    expect(await origin(only())).toBe('port 7400, default')
    expect(await origin(only({ LEASEHOLD_PORT: '1' }))).toBe('port 1, environment LEASEHOLD_PORT')
    served()
    expect(await origin(only())).toBe(`file ${join(box.data, 'serve.url')}`)
    expect(await origin(only({ LEASEHOLD_PORT: '1' }))).toBe('port 1, environment LEASEHOLD_PORT')
  })

  it('is named so where nobody answers', async () => {
    served()
    await coordinator.close()
    expect((await box.run(['list'], only())).err).toContain(`(from file ${join(box.data, 'serve.url')})`)
    expect((await box.run(['list'], only({ LEASEHOLD_PORT: '1' }))).err).toContain('(from port 1, environment LEASEHOLD_PORT)')
  })

  it('as https:// on a port that speaks plain http says so', async () => {
    const { status, err } = await box.run(['list', '--url', coordinator.url.replace('http:', 'https:')])
    expect([status, err]).toEqual([1, expect.stringContaining(`that port speaks plain http. Write ${coordinator.url}`)])
  })
})

describe('doctor', () => {
  const trouble = async (): Promise<DoctorCheck> => {
    const { status, out } = await box.run(['doctor', '--json'])
    expect(status).toBe(1)
    return (JSON.parse(out) as DoctorCheck[]).find(({ name }) => name === 'coordinator') as DoctorCheck
  }

  it.each([
    [401, /^the token may have expired or been revoked: set LEASEHOLD_TOKEN/],
    [403, /^the token may not ask this: use one with the role operator or admin/],
    [500, /log/],
  ])('answered %i, advises on that and not on starting a coordinator', async (status, remedy) => {
    coordinator.override = () => ({ status, body: { error: 'x', message: 'no' } })
    const check = await trouble()
    expect(check.remedy).toMatch(remedy)
    expect(`${check.message} ${check.remedy}`).not.toContain('serve')
  })

  it('says once how to start a coordinator where none answers', async () => {
    await coordinator.close()
    const { message, remedy } = await trouble()
    expect(`${message} ${remedy}`.match(/leasehold serve/g)).toHaveLength(1)
    expect(remedy).toContain('leasehold serve')
  })

  it('gives no two checks names that differ by a hyphen', async () => {
    coordinator.override = () => ({
      status: 200,
      body: { checks: [{ name: 'coordinator data folder', level: 'ok', message: '', remedy: null }] },
    })
    const names = (JSON.parse((await box.run(['doctor', '--json'])).out) as DoctorCheck[]).map(({ name }) => name.replaceAll('-', ' '))
    expect(new Set(names).size).toBe(names.length)
    expect(names).toContain('local data folder')
  })
})
