/** Where something stands in a file. Lines and columns begin at 1. */
export interface Spot {
  file: string
  line: number
  column: number
}

/** Something wrong in a file: what, where, and what to do about it. Never holds a secret's value. */
export interface Fault extends Spot {
  message: string
  /** What to do; null: the message says it. */
  fix: string | null
}

export const faultAt = (spot: Spot, message: string, fix: string | null = null): Fault => ({ ...spot, message, fix })

/** A fault of a whole file: one that is missing, or too large. */
export const faultOf = (file: string, message: string, fix: string | null = null): Fault => ({ file, line: 1, column: 1, message, fix })

/** By file in order of first mention, then by place; what is said twice of one place is said once. */
export const inOrder = (faults: readonly Fault[]): Fault[] => {
  const files = new Map<string, number>()
  for (const one of faults) if (!files.has(one.file)) files.set(one.file, files.size)
  const seen = new Set<string>()
  return faults
    .toSorted((a, b) => (files.get(a.file) ?? 0) - (files.get(b.file) ?? 0) || a.line - b.line || a.column - b.column)
    .filter((one) => {
      const key = JSON.stringify([one.file, one.line, one.column, one.message])
      return seen.has(key) ? false : (seen.add(key), true)
    })
}

/** `applications.yaml:3:5: unknown key "intervall". Did you mean interval?` */
export const faultLine = (one: Fault): string =>
  `${one.file}:${one.line}:${one.column}: ${one.message}${one.fix === null ? '' : `. ${one.fix}`}`
