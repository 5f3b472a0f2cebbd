import { readFileSync } from 'node:fs'

/** From package.json, two folders up in `src` as in `dist`. */
export const packageVersion = (): string => {
  const manifest = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string }
  return manifest.version
}
