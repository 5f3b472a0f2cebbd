/** Variables for a command, as shell text. */

const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** Lines that set and export them, whatever their values hold. */
export const exportLines = (variables: Readonly<Record<string, string>>): string =>
  Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quote(value)}\n`)
    .join('')

/** Null when all can be set; else the first name that can't. Values are never shown. */
export const unsettable = (variables: Readonly<Record<string, string>>): string | null =>
  Object.entries(variables).find(([name, value]) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'))?.[0] ?? null
