/**
 * Credentials for repositories, from a file in the form that git's own `store` helper writes: `https://user:password@host/path` a line, percent-encoded.
 * A line is for its host and, where it has a path, for what lies below that.
 */
import type { GitCredential } from './run.ts'

export interface CredentialLine {
  origin: string
  path: string
  credential: GitCredential
}

export type CredentialsResult = { ok: true; lines: CredentialLine[] } | { ok: false; line: number; message: string }

/** Never repeats what stands in a line. */
export const parseCredentials = (text: string): CredentialsResult => {
  const lines: CredentialLine[] = []
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim()
    if (line === '' || line.startsWith('#')) continue
    const url = URL.canParse(line) ? new URL(line) : null
    if (url?.protocol !== 'https:' || url.password === '') {
      return { ok: false, line: index + 1, message: 'it must be https://user:password@host, or the same with a path' }
    }
    const credential = { username: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }
    if (/[\r\n\0]/.test(credential.username + credential.password))
      return { ok: false, line: index + 1, message: 'it has a line break in it' }
    lines.push({ origin: url.origin, path: url.pathname.replace(/\/$/, ''), credential })
  }
  return { ok: true, lines }
}

/** The one with the longest path that the repository lies below; null: none. */
export const credentialFor = (repoURL: string, lines: readonly CredentialLine[]): GitCredential | null => {
  if (!repoURL.startsWith('https://') || !URL.canParse(repoURL)) return null
  const { origin, pathname } = new URL(repoURL)
  const fits = lines.filter(
    (one) => one.origin === origin && (one.path === '' || pathname === one.path || pathname.startsWith(`${one.path}/`)),
  )
  return fits.toSorted((a, b) => b.path.length - a.path.length)[0]?.credential ?? null
}
