/** Real processes of this machine beside a coordinator that deletes: what is not provably its own lives on, and what is goes. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { FindingView, LeaseView } from '../../src/model/wire.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { processEnvironment, processStat } from '../../src/lib/host.ts'
import { processesWith } from '../support/boxes.ts'
import { freePort, killCoordinators, leasehold, startCoordinator } from '../support/coordinator.ts'
import { until } from '../support/until.ts'

const hourMs = 3_600_000

describe.skipIf(process.platform !== 'linux')('a sweep of this machine in delete mode', () => {
  const strangers: ChildProcess[] = []
  const folders: string[] = []
  afterEach(async () => {
    await killCoordinators()
    for (const child of strangers.splice(0)) child.kill('SIGKILL')
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
  })
  const stranger = async (environment: Record<string, string>): Promise<number> => {
    const child = spawn('sleep', ['3600'], { stdio: 'ignore', detached: true, env: environment })
    strangers.push(child)
    const pid = child.pid as number
    await until(() => processEnvironment(pid).kind === 'read' && processStat(pid)?.alive === true, 'the stranger runs')
    return pid
  }

  it(
    'touches no process without our ref, with an unknown one, of another installation or with the ref of a live box, reports the copy, and takes back a box that nobody holds (cases orphan 3, orphan 7, B1)',
    { timeout: 120_000 },
    async () => {
      const data = mkdtempSync(join(tmpdir(), 'leasehold-strangers-'))
      folders.push(data)
      const options = {
        data,
        port: await freePort(),
        env: { LEASEHOLD_ORPHAN_CLEANUP_MODE: 'delete', LEASEHOLD_ORPHAN_CLEANUP_GRACE_SECONDS: '1' },
      }
      const env = { LEASEHOLD_DATA: data, LEASEHOLD_PORT: String(options.port) }
      const cli = async <T>(...args: string[]): Promise<T> => {
        const ran = await leasehold([...args, '--json'], { env, cwd: data })
        expect(ran, args.join(' ')).toMatchObject({ status: 0 })
        return JSON.parse(ran.stdout) as T
      }
      const inDatabase = async (work: (store: Store) => Promise<unknown>): Promise<void> => {
        const store = await openStore(join(data, 'leasehold.db'))
        await work(store)
        await store.close()
      }
      const later = (hours: number): Promise<void> =>
        inDatabase((store) =>
          store.write((tx) =>
            tx.db
              .updateTable('clock')
              .set({ offset_ms: hours * hourMs })
              .where('id', '=', 1)
              .execute(),
          ),
        )

      const first = await startCoordinator(options)
      const held = await cli<LeaseView>('warmup', '--ttl', '24h', '--idle-timeout', '24h')
      const unheld = await cli<LeaseView>('warmup', '--ttl', '24h', '--idle-timeout', '24h')
      const box = processesWith('LEASEHOLD_REF', held.ref)
      expect(box.length).toBeGreaterThan(0)
      expect(processesWith('LEASEHOLD_REF', unheld.ref).length).toBeGreaterThan(0)
      const installation = (await cli<{ installationID: string }>('installation')).installationID
      const plain = await stranger({ PATH: '/usr/bin' })
      const unknown = await stranger({ LEASEHOLD_REF: 'r00000000abc', LEASEHOLD_INSTALLATION: installation })
      const others = await stranger({ LEASEHOLD_REF: held.ref, LEASEHOLD_INSTALLATION: 'zzzzzzzz' })
      const copy = await stranger({ LEASEHOLD_REF: held.ref, LEASEHOLD_INSTALLATION: installation })

      // The owner's rows are deleted by hand; its ref stays in the ledger.
      await first.stop()
      await inDatabase((store) =>
        store.write(async (tx) => {
          await tx.db
            .deleteFrom('leases')
            .where('id', '=', unheld.id as never)
            .execute()
          await tx.db
            .deleteFrom('instances')
            .where('ref', '=', unheld.ref as never)
            .execute()
          await tx.db
            .updateTable('ledger')
            .set({ owner_closed_at: tx.now })
            .where('ref', '=', unheld.ref as never)
            .execute()
        }),
      )
      await later(1)
      await startCoordinator(options)

      await until(
        async () => {
          await cli('sweep')
          return processesWith('LEASEHOLD_REF', unheld.ref).length === 0
        },
        'what nobody holds is taken back',
        60_000,
      )
      await cli('sweep')

      for (const pid of [plain, unknown, others, copy]) expect(processStat(pid)?.alive, String(pid)).toBe(true)
      expect(processesWith('LEASEHOLD_REF', held.ref)).toEqual(expect.arrayContaining(box))
      expect((await cli<LeaseView>('lease', 'get', held.id)).state).toBe('active')
      expect(await cli('receipt', unheld.ref)).toMatchObject({ whole: true, removals: [{ cause: 'orphan.owner-gone', state: 'gone' }] })
      const findings = await cli<FindingView[]>('orphans')
      expect(findings.filter((one) => one.code === 'contradiction').map((one) => one.target.id)).toContain(`process/local/pid:${copy}`)
    },
  )
})
