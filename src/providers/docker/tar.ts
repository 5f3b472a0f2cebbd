/** The names in a tar stream, as an Engine sends a folder. */

const block = 512

const textAt = (header: Buffer, at: number, length: number): string => {
  const field = header.subarray(at, at + length)
  const end = field.indexOf(0)
  return field.subarray(0, end === -1 ? length : end).toString()
}

const sizeAt = (header: Buffer): number => {
  // Large ones in base 256, marked by the highest bit.
  if (((header[124] ?? 0) & 0x80) !== 0) return Number(header.readBigUInt64BE(128))
  return Number.parseInt(textAt(header, 124, 12).trim() || '0', 8)
}

/** Headers of long names (x, g, L, K) are no entries; what follows has at least a short one. Ends early when whoever asks has seen enough. @throws when it is cut short */
export async function* tarNames(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let held: Buffer = Buffer.alloc(0)
  let skip = 0
  for await (const chunk of chunks) {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    for (;;) {
      const skipped = Math.min(skip, held.length)
      skip -= skipped
      held = held.subarray(skipped)
      if (skip > 0 || held.length < block) break
      const header = held.subarray(0, block)
      held = held.subarray(block)
      if (header.every((byte) => byte === 0)) return
      const size = sizeAt(header)
      if (!Number.isFinite(size)) throw new Error('the listing of a folder is no tar')
      skip = Math.ceil(size / block) * block
      const type = String.fromCharCode(header[156] ?? 0)
      if (!'xgLK'.includes(type)) yield textAt(header, 0, 100)
    }
  }
  throw new Error('the listing of a folder was cut short')
}
