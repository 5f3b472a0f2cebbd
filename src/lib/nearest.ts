/** How many letters have to be changed, added, taken out, or swapped with their neighbour. */
export const distance = (a: string, b: string): number => {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + (same ? 0 : 1))
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(swapped ? Math.min(least, (before[j - 2] as number) + 1) : least)
    }
    before = last
    last = row
  }
  return last[b.length] as number
}

/** The word that was probably meant; null: none is near. */
export const nearest = (word: string, known: Iterable<string>): string | null => {
  const most = Math.max(2, Math.floor(word.length / 4))
  let best: { word: string; far: number } | null = null
  for (const one of known) {
    const far = distance(word, one)
    if (far <= most && (best === null || far < best.far)) best = { word: one, far }
  }
  return best?.word ?? null
}
