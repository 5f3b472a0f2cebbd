/** Splits a command as a shell would, without running anything: quotes, backslashes, and comments that begin a word. Null: a quote is not closed. */
export const shellWords = (line: string): string[] | null => {
  const words: string[] = []
  let word: string | null = null
  let quote: '"' | "'" | null = null
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] as string
    if (quote === "'") {
      if (char === quote) quote = null
      else word += char
    } else if (char === '\\') {
      at += 1
      if (at >= line.length) return null
      word = (word ?? '') + (line[at] as string)
    } else if (quote === '"') {
      if (char === quote) quote = null
      else word += char
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (/\s/.test(char)) {
      if (word !== null) words.push(word)
      word = null
    } else if (char === '#' && word === null) {
      while (at < line.length && line[at] !== '\n') at += 1
    } else word = (word ?? '') + char
  }
  if (quote !== null) return null
  return word === null ? words : [...words, word]
}
