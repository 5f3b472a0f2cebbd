/**
 * How the record of a removal is read. One of an unknown version, or whose JSON says nothing that can be understood, is refused untouched: it proves nothing, and
 * nothing of its group is taken back by anybody until it can be read again (leases R89, decisions 8).
 */

export interface RecordedIdentity {
  scope: string
  location: string
  kind: string
  nativeId: string
  immutableId: string
}

/** The first has neither identity nor progress, and is read as one that is not bound yet (leases R90). */
const knownVersions: ReadonlySet<number> = new Set([1, 2])

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isIdentity = (one: unknown): one is RecordedIdentity =>
  typeof one === 'object' &&
  one !== null &&
  ['scope', 'location', 'kind', 'nativeId', 'immutableId'].every((key) => typeof (one as Record<string, unknown>)[key] === 'string')

/** Null: it can't be read. Nothing recorded is none. */
export const membersIn = <M extends RecordedIdentity>(text: string | null): M[] | null => {
  if (text === null) return []
  const value = parsed(text)
  return Array.isArray(value) && value.every(isIdentity) ? (value as M[]) : null
}

/** Immutable ids of what is proved gone; null: they can't be read. */
export const progressIn = (text: string | null): string[] | null => {
  if (text === null) return []
  const value = parsed(text)
  return Array.isArray(value) && value.every((one) => typeof one === 'string') ? value : null
}

/** What is a JSON object; null where nothing is recorded, or it can't be read. */
export const objectIn = <T extends object>(text: string | null): T | null => {
  const value = text === null ? null : parsed(text)
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as T) : null
}

export interface RemovalRecord {
  version: number
  identity: string | null
  planned: string | null
  progress: string
  baseline: string | null
  /** Missing: it is not looked at. */
  stopped?: string | null
}

/** Null: it can be. */
export const whyUnreadable = ({ version, identity, planned, progress, baseline, stopped = null }: RemovalRecord): string | null => {
  if (!knownVersions.has(Number(version))) return `a removal of version ${version} is not known here: nothing was touched`
  const broken = [
    membersIn(identity) === null ? 'identity' : '',
    membersIn(planned) === null ? 'plan' : '',
    progressIn(progress) === null ? 'progress' : '',
    baseline !== null && objectIn(baseline) === null ? 'baseline' : '',
    stopped !== null && objectIn(stopped) === null ? 'stop' : '',
  ].filter((one) => one !== '')
  return broken.length === 0 ? null : `the removal's record can't be read (${broken.join(', ')}): nothing was touched`
}
