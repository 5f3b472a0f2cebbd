/** Paths inside a repository or folder: relative, with `/`, and never out of it. Links are judged where files are read. */

/** Joined and tidied; null: it is absolute, leaves the tree, or is no path at all. `''` is the tree itself. */
export const joinPath = (folder: string, path: string): string | null => {
  if (path.startsWith('/') || path.includes('\0') || path.includes('\\')) return null
  const parts: string[] = folder === '' ? [] : folder.split('/')
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue
    if (part !== '..') parts.push(part)
    else if (parts.pop() === undefined) return null
  }
  return parts.join('/')
}

/** `''` for what lies at the top. */
export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
