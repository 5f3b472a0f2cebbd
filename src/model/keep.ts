/** Labels by which people say "not this" (leases R56, R68, R95; cases H6, K7). */

/** As keys are compared: without case, blanks, separators and our prefix. */
const plain = (key: string): string =>
  key
    .toLowerCase()
    .replace(/^\s*leasehold(\.dev)?\s*[./:_-]\s*/, '')
    .replace(/[^a-z0-9]/g, '')

const protecting: ReadonlySet<string> = new Set([
  'keep',
  'keepuntil',
  'keepalive',
  'donotdelete',
  'dontdelete',
  'nodelete',
  'protect',
  'protected',
])
/** leases R95: everything else protects, also what nobody can read as a yes. */
const denying: ReadonlySet<string> = new Set(['', 'false', '0', 'no', 'n', 'off'])

/** A key in a namespace of its own (`team/keep`, `x.keep`) says the same. */
const lastPart = (key: string): string => plain(key.split(/[./:]/).at(-1) ?? key)

/** The label that protects, as it is written; null: none does. */
export const keepLabel = (labels: Readonly<Record<string, string>>): string | null => {
  for (const key in labels) {
    // The cheap look first: of a million resources few have such a key.
    if (!/keep|delete|protect/i.test(key.replace(/[^a-z]/gi, ''))) continue
    if (!protecting.has(plain(key)) && !protecting.has(lastPart(key))) continue
    const value = labels[key]
    if (typeof value !== 'string' || !denying.has(value.trim().toLowerCase())) return key
  }
  return null
}

/** What a lease says of its box in the way of such a label, whatever is written on the box (decisions 4); null: nothing. @param lease `labels` as JSON */
export const keepOfLease = (lease: { keep: number; labels: string }): string | null =>
  lease.keep === 1 ? 'keep' : keepLabel(JSON.parse(lease.labels) as Record<string, string>)
