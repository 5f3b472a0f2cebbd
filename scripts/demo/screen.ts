/** What the reader of the demo sees: headings, sentences, command lines and what they print. Without a terminal, or with NO_COLOR, no colours. */
import { styleText } from 'node:util'

type Style = 'bold' | 'cyan' | 'dim' | 'green'

const width = 100

const coloured = process.stdout.isTTY === true && (process.env['NO_COLOR'] ?? '') === '' && process.env['TERM'] !== 'dumb'
const paint = (style: Style, text: string): string => (coloured ? styleText(style, text, { validateStream: false }) : text)

let silent = false
/** Nothing more is said: the demo was stopped. */
export const mute = (): void => void (silent = true)

const put = (text: string): void => {
  if (!silent) process.stdout.write(text)
}

const wrapped = (text: string): string => {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string
    if (line === '') lines[lines.length - 1] = word
    else if (line.length + 1 + word.length <= width) lines[lines.length - 1] = `${line} ${word}`
    else lines.push(word)
  }
  return lines.join('\n')
}

export const heading = (text: string): void => put(`\n${paint('cyan', `== ${text} ==`)}\n\n`)
/** A sentence for the reader, broken at 100 columns. */
export const say = (text: string): void => put(`${wrapped(text)}\n`)
export const good = (text: string): void => put(`${paint('green', wrapped(text))}\n`)
export const command = (line: string): void => put(`\n${paint('bold', `$ ${line}`)}\n`)
/** What a command printed, set in from the story. */
export const output = (text: string): void => put(text.replace(/^(?=.)/gm, '  '))
export const gap = (): void => put('\n')

/** As somebody would type it. */
export const typed = (words: readonly string[]): string =>
  words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ')
