import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { frameReader } from '../../../src/lib/docker/frames.ts'

const frame = (stream: number, data: Buffer): Buffer => {
  const header = Buffer.alloc(8)
  header[0] = stream
  header.writeUInt32BE(data.length, 4)
  return Buffer.concat([header, data])
}

describe('the frames of a command without a terminal', () => {
  it('come out as they went in, however the bytes are cut', () => {
    const said = fc.array(fc.tuple(fc.constantFrom(1, 2), fc.uint8Array({ maxLength: 40 })), { maxLength: 12 })
    fc.assert(
      fc.property(said, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), (frames, cuts) => {
        const bytes = Buffer.concat(frames.map(([stream, data]) => frame(stream, Buffer.from(data))))
        const out = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) }
        const take = frameReader((stream, data) => (out[stream] = Buffer.concat([out[stream], data])))
        for (let at = 0, i = 0; at < bytes.length; i += 1) {
          const size = cuts[i % cuts.length] as number
          take(bytes.subarray(at, at + size))
          at += size
        }
        const of = (wanted: number): Buffer =>
          Buffer.concat(frames.flatMap(([stream, data]) => (stream === wanted ? [Buffer.from(data)] : [])))
        expect([out.stdout, out.stderr]).toEqual([of(1), of(2)])
      }),
    )
  })
})
