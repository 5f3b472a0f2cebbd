/** The stream of a command without a terminal: frames of a stream's number, three zeros, a length of four bytes, and that many bytes. */

export type FrameStream = 'stdout' | 'stderr'

/** @returns to be called with each chunk as it comes; `onData` gets what each stream said, in order */
export const frameReader = (onData: (stream: FrameStream, data: Buffer) => void): ((chunk: Buffer) => void) => {
  const header = Buffer.alloc(8)
  let filled = 0
  let left = 0
  let stream: FrameStream = 'stdout'
  return (chunk) => {
    let at = 0
    while (at < chunk.length) {
      if (left > 0) {
        const data = chunk.subarray(at, at + left)
        onData(stream, data)
        left -= data.length
        at += data.length
      } else {
        const copied = chunk.copy(header, filled, at, at + 8 - filled)
        filled += copied
        at += copied
        if (filled === 8) {
          filled = 0
          stream = header[0] === 2 ? 'stderr' : 'stdout'
          left = header.readUInt32BE(4)
        }
      }
    }
  }
}
