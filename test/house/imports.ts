/** What a TypeScript file imports, in whatever form, and where it asks for the time by itself; read from its syntax tree. */
import { parseSync } from 'vite'

interface Node {
  type: string
  [key: string]: unknown
}

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

const walk = (value: unknown, visit: (node: Node) => void): void => {
  if (Array.isArray(value)) for (const item of value) walk(item, visit)
  else if (isNode(value)) {
    visit(value)
    for (const child of Object.values(value)) walk(child, visit)
  }
}

const treeOf = (file: string, text: string): unknown => {
  const { program, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`)
  return program
}

const importing = new Set(['ImportDeclaration', 'ExportNamedDeclaration', 'ExportAllDeclaration', 'ImportExpression', 'TSImportType'])

/** The specifiers of static, type, re-exporting and dynamic imports. */
export const importsOf = (file: string, text: string): string[] => {
  const found: string[] = []
  walk(treeOf(file, text), (node) => {
    const source = node.source as { value?: unknown } | null | undefined
    if (importing.has(node.type) && typeof source?.value === 'string') found.push(source.value)
  })
  return found
}

/** `new Date()` and `Date()`: the linter has no rule for them; `Date.now` and `Math.random` it forbids. */
export const readsClock = (file: string, text: string): boolean => {
  let found = false
  walk(treeOf(file, text), (node) => {
    const callee = node.callee as { name?: unknown } | undefined
    if (callee?.name !== 'Date') return
    if (node.type === 'CallExpression' || (node.type === 'NewExpression' && (node.arguments as unknown[]).length === 0)) found = true
  })
  return found
}
