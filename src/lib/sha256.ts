import { createHash } from 'node:crypto'

/** Of the text in UTF-8, as hex. */
export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
