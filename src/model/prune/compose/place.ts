import type { Document, Path } from '../document.ts'
import { valueAt } from '../document.ts'
import type { Spot } from '../fault.ts'

/** Where something of the merged whole stands: in the last file that says the most of its path. */
export const spotIn = (documents: readonly Document[], path: Path, of?: 'key' | 'value'): Spot => {
  for (let length = path.length; length >= 0; length -= 1) {
    const found = documents.findLast((one) => valueAt(one.value, path.slice(0, length)) !== undefined)
    if (found) return found.spotOf(path, of)
  }
  throw new Error('a release without a Compose file')
}
