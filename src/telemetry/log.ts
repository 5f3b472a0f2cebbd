/** The log: JSON lines on stderr, with what looks like a secret replaced. Passed in where it is needed; the core never imports it. */
import { pino, type Logger } from 'pino'
import { redact } from '../lib/redact.ts'

export type { Logger }

const redactDeep = (value: unknown, depth = 0): unknown => {
  if (typeof value === 'string') return redact(value)
  if (value === null || typeof value !== 'object' || depth > 6) return value
  if (value instanceof Error) return { type: value.name, message: redact(value.message), stack: redact(value.stack ?? '') }
  if (Array.isArray(value)) return value.map((one) => redactDeep(one, depth + 1))
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, /token|secret|password|authorization/i.test(key) ? '***' : redactDeep(one, depth + 1)]),
  )
}

/** @param level trace, debug, info, warn, error or silent. @param destination default: stderr, written synchronously so that a crash loses no line */
export const createLog = (level: string, destination: NodeJS.WritableStream | number = 2): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }), log: (fields) => redactDeep(fields) as Record<string, unknown> },
      hooks: {
        logMethod(words, method) {
          method.apply(this, words.map((word) => (typeof word === 'string' ? redact(word) : word)) as Parameters<typeof method>)
        },
      },
    },
    typeof destination === 'number' ? pino.destination({ dest: destination, sync: true }) : destination,
  )
