/** The dead-man clock of a box, as a file that its first process reads; and beside it under which number it was set last. */
import { randomBytes } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RearmContext } from '../contract.ts'
import { deadlineText } from './create.ts'
import type { Box } from './folder.ts'

/** Missing on a box whose clock was not moved since it was made or wiped. */
export const orderFile = 'deadline.order'
const longestOrder = 20

/** 0 where it can't be read as one: what a command in the box put there bars nobody, and is never waited for. */
const orderOf = (folder: string): number => {
  let file: number
  try {
    file = openSync(join(folder, orderFile), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return 0
  }
  try {
    const stat = fstatSync(file)
    const order = stat.isFile() && stat.size <= longestOrder ? Number(readFileSync(file, 'utf8')) : 0
    return Number.isSafeInteger(order) ? order : 0
  } finally {
    closeSync(file)
  }
}

const put = (folder: string, name: string, text: string): void => {
  const fresh = join(folder, `${name}.${randomBytes(4).toString('hex')}`)
  writeFileSync(fresh, text, { mode: 0o600, flag: 'wx' })
  renameSync(fresh, join(folder, name))
}

/**
 * In one turn of this process, so that nothing of it comes between: whether whoever asks still stands behind it, the compare, and the move.
 * @throws when it does not, or the clock was set under a greater number
 */
export const moveClock = (box: Box, lifetimeSeconds: number, { signal, stands, order }: RearmContext): void => {
  const why = (text: string): Error => new Error(`the clock of ${box.nativeId} was not moved: ${text}`)
  if (signal.aborted || !stands()) throw why('whoever asked may have lost it meanwhile')
  if (orderOf(box.folder) > order) throw why('it was set for a later holder')
  put(box.folder, orderFile, String(order))
  put(box.folder, 'deadline', deadlineText(lifetimeSeconds))
}
