/** Files of `env_file`: `NAME=value` a line, taken as it is; `NAME` alone takes what a values file says; `#` begins a comment. */
export interface EnvLine {
  name: string
  /** Null: named without a value. */
  value: string | null
}

export type EnvFileResult = { ok: true; lines: EnvLine[] } | { ok: false; line: number; message: string }

/** Never repeats a value. */
export const parseEnvFile = (text: string): EnvFileResult => {
  const lines: EnvLine[] = []
  for (const [index, raw] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const line = raw.trimStart()
    if (line === '' || line.startsWith('#')) continue
    const equals = line.indexOf('=')
    const name = equals < 0 ? line : line.slice(0, equals)
    if (name === '') return { ok: false, line: index + 1, message: 'there is no name before "="' }
    if (/[ \t]/.test(name)) return { ok: false, line: index + 1, message: 'the name before "=" has blanks in it' }
    lines.push({ name, value: equals < 0 ? null : line.slice(equals + 1) })
  }
  return { ok: true, lines }
}
