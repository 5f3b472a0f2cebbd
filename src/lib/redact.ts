/** Secrets never reach logs, events or errors: what looks like one is replaced before it is stored or shown. */

const patterns: readonly [RegExp, string][] = [
  [/\b(lht|lhx)_[A-Za-z0-9_-]{8,}/g, '$1_***'],
  [/\b(authorization["']?\s*[:=]\s*["']?)(bearer|basic)\s+[^\s"',]+/gi, '$1$2 ***'],
  [/\b(bearer)\s+[A-Za-z0-9._~+/=-]{8,}/gi, '$1 ***'],
  [/(\w+:\/\/[^/\s:@]+):[^@\s/]+@/g, '$1:***@'],
  [/\b((?:password|passwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key)["']?\s*[:=]\s*["']?)[^\s"',;&]+/gi, '$1***'],
  [/\bAKIA[0-9A-Z]{16}\b/g, 'AKIA***'],
]
const longest = 2000

export const redact = (text: string): string => {
  let clean = text
  for (const [pattern, replacement] of patterns) clean = clean.replace(pattern, replacement)
  return clean.length > longest ? `${clean.slice(0, longest)}…` : clean
}

/** The message of whatever was thrown, redacted. */
export const errorText = (error: unknown): string => redact(error instanceof Error ? error.message : String(error))
