/** What is particular to the listing of this machine; the rest is in the conformance suite. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listAll } from '../../conformance/listing.ts'
import { type Boxes, argumentsOf, initOf, openBoxes, running, uniqueSleep, until } from './support.ts'

let boxes: Boxes
beforeEach(() => {
  boxes = openBoxes({ graceSeconds: 0 })
})
afterEach(() => boxes.dispose())

const list = () => listAll(boxes.provider, boxes.config)
const outside = async (environment: Record<string, string>): Promise<string> => {
  const pid = boxes.outside(['sleep', uniqueSleep()], environment).pid as number
  await until('it runs', () => argumentsOf(pid)[0] === 'sleep')
  return `pid:${pid}`
}

describe.skipIf(process.platform !== 'linux')('the listing of boxes', () => {
  it('is complete and empty where no box was ever made', async () => {
    const { resources, coverage } = await list()
    expect(resources).toEqual([])
    expect(coverage).toEqual([{ location: 'local', kind: 'box', state: { kind: 'complete' }, pages: 1 }])
  })

  it('shows a box with its labels and its tags', async () => {
    const { request, resource } = await boxes.make({ labels: { leasehold: 'true', keep: 'true' } })
    expect((await list()).resources).toMatchObject([
      {
        resource: { nativeId: resource.nativeId },
        labels: {
          leasehold: 'true',
          keep: 'true',
          LEASEHOLD_REF: request.ref,
          LEASEHOLD_INSTALLATION: request.installation,
          LEASEHOLD_ATTEMPT: request.attemptToken,
        },
        attachedTo: [],
      },
    ])
  })

  it('takes what runs in a box for a part of it, and not for a contradiction', async () => {
    const { resource } = await boxes.make()
    const seconds = uniqueSleep()
    boxes.run(resource, ['sleep', seconds])
    const [pid] = await until('it runs', () => (running('sleep', seconds).length > 0 ? running('sleep', seconds) : null))
    const { contradictions } = await list()
    expect(contradictions.map((one) => one.nativeId)).not.toContain(`pid:${pid}`)
  })

  it('reports a process outside that carries the ref of a box, or an unknown one', async () => {
    const { request } = await boxes.make()
    const installation = request.installation
    const copy = await outside({ LEASEHOLD_REF: request.ref, LEASEHOLD_INSTALLATION: installation })
    const unknown = await outside({ LEASEHOLD_REF: 'r00000000001', LEASEHOLD_INSTALLATION: installation })
    const bare = await outside({ LEASEHOLD_REF: 'r00000000002' })
    const { contradictions, resources, coverage } = await list()
    for (const [id, ref] of [
      [copy, request.ref],
      [unknown, 'r00000000001'],
      [bare, 'r00000000002'],
    ] as const)
      expect(contradictions).toContainEqual({ nativeId: id, location: 'local', ref, why: expect.stringContaining(ref) })
    expect(resources).toHaveLength(1)
    expect(coverage[0]?.state.kind).toBe('complete')
  })

  it("leaves another installation's processes to it (case B1)", async () => {
    const { request } = await boxes.make()
    const foreign = await outside({ LEASEHOLD_REF: 'r00000000003', LEASEHOLD_INSTALLATION: 'zzzzzzzz' })
    const garbled = await outside({ LEASEHOLD_REF: 'r00000000004', LEASEHOLD_INSTALLATION: 'not one' })
    const ids = (await list()).contradictions.map((one) => one.nativeId)
    expect(request.installation).not.toBe('zzzzzzzz')
    expect(ids).not.toContain(foreign)
    expect(ids).toContain(garbled)
  })

  it('reports a folder that can’t be understood, and a record that names another process', async () => {
    const good = await boxes.make()
    const lying = await boxes.make()
    const { pid, start } = initOf(good.folder)
    const { boot, inode } = initOf(lying.folder)
    writeFileSync(join(lying.folder, 'init'), `${boot} ${inode} ${pid} ${start}\n`)
    mkdirSync(join(boxes.dataFolder, 'boxes', 'r00000000005-1'))
    const { contradictions, resources } = await list()
    expect(contradictions.map((one) => one.nativeId)).toEqual(expect.arrayContaining([lying.resource.nativeId, 'r00000000005-1']))
    expect(resources.map((one) => one.resource.nativeId)).toEqual([good.resource.nativeId])
    // Mended, so that it can be taken back.
    const mended = initOf(lying.folder)
    expect(mended.pid).toBe(pid)
    const [, , ownPid, ownStart] = lying.resource.immutableId.split(':')
    writeFileSync(join(lying.folder, 'init'), `${boot} ${inode} ${ownPid} ${ownStart}\n`)
    expect((await list()).resources).toHaveLength(2)
  })
})
