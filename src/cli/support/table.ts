import { paint, printable, type Style } from './text.ts'

export interface Column<Row> {
  title: string
  cell: (row: Row) => string | number | null | undefined
  style?: (row: Row) => Style | null
  align?: 'right'
}

const blankToDash = (value: string | number | null | undefined): string => {
  const text = printable(String(value ?? ''))
  return text === '' ? '-' : text
}

/** A table for people: a heading, columns as wide as their widest cell, two spaces between. Ends with a line break. */
export const renderTable = <Row>(columns: readonly Column<Row>[], rows: readonly Row[], colours: boolean): string => {
  const cells = rows.map((row) => columns.map((column) => blankToDash(column.cell(row))))
  const widths = columns.map((column, at) => Math.max(column.title.length, ...cells.map((line) => (line[at] as string).length)))
  const place = (text: string, at: number): string =>
    columns[at]?.align === 'right'
      ? text.padStart(widths[at] as number)
      : at === columns.length - 1
        ? text
        : text.padEnd(widths[at] as number)
  const heading = columns.map((column, at) => paint(colours, 'bold', place(column.title, at))).join('  ')
  const lines = cells.map((line, row) =>
    line
      .map((text, at) => {
        const style = columns[at]?.style?.(rows[row] as Row) ?? null
        const placed = place(text, at)
        return style === null ? placed : paint(colours, style, placed)
      })
      .join('  ')
      .trimEnd(),
  )
  return `${[heading.trimEnd(), ...lines].join('\n')}\n`
}

/** Names and values below each other, for one object. Lines without a value are left out. */
export const renderFields = (fields: readonly (readonly [string, string | number | null | undefined])[], colours: boolean): string => {
  const present = fields.filter(([, value]) => value !== null && value !== undefined && value !== '')
  const width = Math.max(0, ...present.map(([name]) => name.length))
  return present.map(([name, value]) => `${paint(colours, 'bold', name.padEnd(width))}  ${printable(String(value))}\n`).join('')
}
