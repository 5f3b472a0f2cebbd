/** Files by their paths, from wherever they come: a folder, or a commit. Nothing is read that leads out of the tree. */
export interface FileTree {
  /** What it is called in faults and to people; never with a credential. */
  readonly name: string
  read(path: string): Promise<FileResult>
}

export type FileResult = { ok: true; bytes: Uint8Array } | { ok: false; message: string }

/** Of one file. */
export const mostFileBytes = 4 * 1024 * 1024

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** Null: it is no text in UTF-8. */
export const textOf = (bytes: Uint8Array): string | null => {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}
