/** Secrets never reach logs, events or errors: what looks like one is replaced before it is stored or shown. */

// Every repetition is bounded or can't be entered twice at one place: a provider's answer of any size costs time in proportion to its length.
const patterns: readonly [RegExp, string][] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g, '*** private key ***'],
  [/\b(lht|lhx)_[A-Za-z0-9_-]{8,}/g, '$1_***'],
  [/\b(gh[pousr]|github_pat)_[A-Za-z0-9_]{16,}/g, '$1_***'],
  [/(authorization\\?["']?\s{0,5}[:=]\s{0,5}\\?["']?)(bearer|basic|token|digest|negotiate|apikey)\s{1,5}[^\s"',\\]+/gi, '$1$2 ***'],
  [/\b(bearer)\s{1,5}[A-Za-z0-9._~+/=-]{8,}/gi, '$1 ***'],
  [/\b(\w{1,20}:\/\/[^/\s:@"']{0,200}):[^/\s"']{1,500}@/g, '$1:***@'],
  [
    /((?:password|passwd|passphrase|secret|token|credentials?|signature|(?:api|access|private|account)[_-]?key)\\?["']?\s{0,5}[:=]\s{0,5})(?:\\?"[^"]*(?:"|$)|'[^']*(?:'|$)|[^\s"',;&]+)/gi,
    '$1***',
  ],
  [/\b(AKIA|ASIA)[0-9A-Z]{16}\b/g, '$1***'],
]
const longest = 2000

/** Without secrets, cut at 2000 characters, and storable everywhere: PostgreSQL refuses NUL and half characters. */
export const redact = (text: string): string => {
  let clean = text.replaceAll('\0', '')
  for (const [pattern, replacement] of patterns) clean = clean.replace(pattern, replacement)
  return (clean.length > longest ? `${clean.slice(0, longest)}…` : clean).toWellFormed()
}

/** The message of whatever was thrown, redacted. */
export const errorText = (error: unknown): string => redact(error instanceof Error ? error.message : String(error))
