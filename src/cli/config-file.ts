/** Finds and reads `leasehold.yml`: `--config`, else `./leasehold.yml`, else `~/.config/leasehold/leasehold.yml`. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ConfigSources, FileEntry } from '../model/config.ts'
import { CliError, exitCodes, messageOf } from './support/errors.ts'
import type { Io } from './support/io.ts'

type ConfigFile = NonNullable<ConfigSources['file']>

const refuse = (message: string): never => {
  throw new CliError(message, exitCodes.usage)
}

/** Null where there is none. A file that is named, or there but unreadable or wrong, ends the program with exit 2 and its line. */
export const readConfigFile = async (named: string | undefined, io: Pick<Io, 'folder' | 'home'>): Promise<ConfigFile | null> => {
  if (named !== undefined)
    return await parse(resolve(io.folder, named), readText(resolve(io.folder, named)) ?? refuse(`${named}: no such file`))
  for (const path of [join(io.folder, 'leasehold.yml'), join(io.home, '.config', 'leasehold', 'leasehold.yml')]) {
    const text = readText(path)
    if (text !== null) return await parse(path, text)
  }
  return null
}

const readText = (path: string): string | null => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    return refuse(`${path}: can't be read: ${messageOf(error)}`)
  }
}

const parse = async (path: string, text: string): Promise<ConfigFile> => {
  const { isMap, isScalar, LineCounter, parseDocument } = await import('yaml')
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: true })
  const lineOf = (offset: number | undefined): number => lines.linePos(offset ?? 0).line || 1
  const fault = document.errors[0]
  if (fault) return refuse(`${path}:${lineOf(fault.pos[0])}: ${fault.message.split('\n')[0]}`)
  const entries: FileEntry[] = []
  if (document.contents === null) return { path, entries }
  if (!isMap(document.contents)) return refuse(`${path}:1: must hold "key: value" lines`)
  for (const { key, value } of document.contents.items) {
    if (!isScalar(key)) return refuse(`${path}:1: a key must be a plain word`)
    // A number keeps its spelling (0123 is no port), and a token of digits only stays the text that it is.
    const plain = isScalar(value) ? (value.source ?? value.value) : value === null ? null : {}
    const empty = plain === null || (isScalar(value) && value.value === null)
    entries.push({ key: String(key.value), value: empty ? null : plain, line: lineOf(key.range?.[0]) })
  }
  return { path, entries }
}
