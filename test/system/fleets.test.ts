/** A fleet of real boxes as a user meets it: one box for one command after the other, with nothing of the last one left in it. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, it } from 'vitest'
import type { FleetView, LeaseView } from '../../src/model/wire.ts'
import { boxFolders, processesWith } from '../support/boxes.ts'
import { freePort, killCoordinators, leasehold, startCoordinator } from '../support/coordinator.ts'
import { until } from '../support/until.ts'

const namespacesPossible =
  spawnSync('unshare', ['--user', '--map-current-user', '--pid', '--fork', '--kill-child', '--', 'true']).status === 0

describe.skipIf(!namespacesPossible)('a fleet of boxes on this machine', () => {
  const undo: (() => void)[] = []
  afterEach(async () => {
    await killCoordinators()
    for (const step of undo.splice(0)) step()
  })

  it('runs one command after the other in the same box, each as its own lease, and with nothing of the last one in it', async () => {
    const data = mkdtempSync(join(tmpdir(), 'leasehold-fleet-'))
    undo.push(() => rmSync(data, { recursive: true, force: true }))
    const options = { data, port: await freePort() }
    const cli = (...args: string[]) => leasehold(args, { env: { LEASEHOLD_DATA: data, LEASEHOLD_PORT: String(options.port) }, cwd: data })
    await startCoordinator(options)
    expect(await cli('fleet', 'create', 'ci', '--size', '1')).toMatchObject({ status: 0 })
    const ready = () =>
      until(
        async () => (JSON.parse((await cli('fleet', 'list', '--json')).stdout) as FleetView[]).some((fleet) => fleet.ready === 1),
        'a box is ready',
        20_000,
      )
    await ready()
    // One box for all: nothing else is made.
    expect(await cli('fleet', 'scale', 'ci', '--pause')).toMatchObject({ status: 0 })
    const [box] = boxFolders(data)
    const script = `echo "$LEASEHOLD_REF $LEASEHOLD_LEASE_ID $LEASEHOLD_LEASE_TOKEN"; echo secret > "${data}/boxes/${box}/home/left.txt"; setsid sleep 31.0777 & exit 3`
    const told: string[][] = []
    for (let i = 0; i < 2; i++) {
      await ready()
      const ran = await cli('run', '--fleet', 'ci', '--', 'sh', '-c', script)
      expect(ran, ran.stderr).toMatchObject({ status: 3 })
      told.push(ran.stdout.trim().split(' '))
      expect(readdirSync(join(data, 'boxes', box as string, 'home'))).toEqual([])
      const [ref = '', lease = ''] = told.at(-1) ?? []
      expect(processesWith('LEASEHOLD_LEASE_ID', lease)).toEqual([])
      // The box itself has its clock alone.
      expect(processesWith('LEASEHOLD_REF', ref).length).toBeGreaterThan(0)
      expect(boxFolders(data)).toEqual([box])
    }
    const leases = JSON.parse((await cli('lease', 'list', '--json')).stdout) as LeaseView[]
    expect(leases.map((lease) => [lease.state, lease.cleanup.state, lease.cloudID])).toEqual([
      ['released', 'returned', box],
      ['released', 'returned', box],
    ])
    const [first, second] = told as [string[], string[]]
    expect(first[0]).toBe(second[0])
    expect(new Set([first[1], second[1]])).toEqual(new Set(leases.map((lease) => lease.id)))
    expect(first[2]).toMatch(/\S{20,}/)
    expect(second[2]).not.toBe(first[2])
  }, 150_000)
})
