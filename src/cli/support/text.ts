import { styleText } from 'node:util'
import { briefDuration } from '../../lib/duration.ts'

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow'

/** Text of others for a terminal: control characters could move its cursor or rewrite what stands there (shown as `\x1b`). */
export const printable = (text: string): string =>
  // eslint-disable-next-line no-control-regex
  text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (character) => {
    const code = character.codePointAt(0) as number
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
  })

export const paint = (colours: boolean, style: Style, text: string): string =>
  colours ? styleText(style, text, { validateStream: false }) : text

/** How long ago or until: `5m ago`, `in 1h 5m`, `now`; `-` for nothing. */
export const relative = (time: string | null | undefined, nowMs: number): string => {
  if (time === null || time === undefined) return '-'
  const difference = Date.parse(time) - nowMs
  if (Number.isNaN(difference)) return printable(time)
  const size = briefDuration(Math.abs(difference))
  if (size === '0s') return 'now'
  return difference < 0 ? `${size} ago` : `in ${size}`
}

export const stateStyle = (state: string): Style | null => {
  if (['active', 'busy', 'idle', 'ok', 'ready', 'running'].includes(state)) return 'green'
  if (['provisioning', 'pending', 'terminating', 'warning', 'preparing', 'removing', 'verifying', 'held', 'open'].includes(state))
    return 'yellow'
  if (['failed', 'error', 'missing', 'gave-up'].includes(state)) return 'red'
  return ['released', 'expired', 'terminated', 'gone', 'returned', 'resolved'].includes(state) ? 'dim' : null
}
