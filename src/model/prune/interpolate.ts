/**
 * Compose's `${VAR}` (decisions: values and nothing else; no environment): `$V`, `${V}`, `${V:-d}`, `${V-d}`, `${V:?e}`, `${V?e}`, `$$`. Where
 * Compose guesses, this refuses: a variable that nobody set is no empty text, and `$V-x` is no default.
 */
import { isMap, type Json, type Path } from './document.ts'

export type Values = ReadonlyMap<string, string>

export type Substituted = { ok: true; text: string } | { ok: false; message: string; fix: string }

const opening = /\$(?:(\$)|([A-Za-z_]\w*)|\{|)/g
const inside = /^([A-Za-z_]\w*)(?:(:?[-?])([\s\S]*))?$/

/** One text. A fault names the variable and never a value. */
export const substitute = (template: string, values: Values): Substituted => {
  let result = ''
  let last = 0
  opening.lastIndex = 0
  for (let found = opening.exec(template); found; found = opening.exec(template)) {
    result += template.slice(last, found.index)
    const [whole, escaped, named] = found
    last = found.index + whole.length
    if (escaped) {
      result += '$'
    } else if (named !== undefined) {
      if (/^:?[-?]/.test(template.slice(last))) {
        return {
          ok: false,
          message: `"$${named}" is followed by what some versions of Compose take for a default`,
          fix: `Write \${${named}} instead`,
        }
      }
      const value = values.get(named)
      if (value === undefined) return unset(named)
      result += value
    } else if (whole === '${') {
      const end = template.indexOf('}', last)
      const one = end < 0 ? null : expression(template.slice(last, end), values)
      if (one === null)
        return { ok: false, message: 'a "${" is not followed by a variable and "}"', fix: 'Write ${NAME}, or $$ for a dollar sign' }
      if (!one.ok) return one
      result += one.text
      last = end + 1
      opening.lastIndex = last
    } else {
      return { ok: false, message: 'a "$" stands alone', fix: 'Write $$ for a dollar sign' }
    }
  }
  return { ok: true, text: result + template.slice(last) }
}

const unset = (name: string): Substituted => ({
  ok: false,
  message: `the variable ${name} has no value`,
  fix: `Add it to a values file, or write \${${name}:-default}`,
})

const expression = (source: string, values: Values): Substituted | null => {
  const parts = inside.exec(source)
  if (!parts) return null
  const [, name = '', operator, rest = ''] = parts
  if (rest.includes('${')) {
    return {
      ok: false,
      message: `the default of ${name} has a variable in it, which docker stack deploy does not read`,
      fix: 'Put the default into a values file',
    }
  }
  const value = values.get(name)
  const enough = value !== undefined && (value !== '' || !operator?.startsWith(':'))
  if (enough) return { ok: true, text: value }
  if (operator?.endsWith('-')) return { ok: true, text: rest }
  if (operator)
    return {
      ok: false,
      message: `the variable ${name} is required: ${rest === '' ? 'it has no value' : rest}`,
      fix: 'Add it to a values file',
    }
  return unset(name)
}

export interface InterpolationProblem {
  path: Path
  message: string
  fix: string | null
}

/** A copy with every text substituted and, where Compose wants a number or truth value of a substituted text, turned into that. */
export const interpolate = (value: Json, values: Values): { value: Json; problems: InterpolationProblem[] } => {
  const problems: InterpolationProblem[] = []
  const go = (one: Json, path: Path): Json => {
    if (Array.isArray(one)) return one.map((item, index) => go(item, [...path, index]))
    if (isMap(one)) return Object.fromEntries(Object.entries(one).map(([key, item]) => [key, go(item, [...path, key])]))
    if (typeof one !== 'string' || !one.includes('$')) return one
    const done = substitute(one, values)
    if (!done.ok) {
      problems.push({ path, message: done.message, fix: done.fix })
      return one
    }
    const cast = done.text === one ? undefined : castAt(path)
    if (!cast) return done.text
    const result = cast(done.text)
    if (result !== null) return result
    problems.push({ path, message: 'what the variable gives is no value for this key', fix: 'Set it to a number, or to true or false' })
    return done.text
  }
  return { value: go(value, []), problems }
}

type Cast = (text: string) => Json
const toWhole: Cast = (text) => (/^[-+]?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : null)
const toNumber: Cast = (text) => (/^[-+]?(?:\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : null)
const toTruth: Cast = (text) => (/^(?:y|yes|true|on)$/i.test(text) ? true : /^(?:n|no|false|off)$/i.test(text) ? false : null)

/** `*` is any key, `#` any index. Those of `docker stack deploy`. */
const casts: readonly [pattern: string, cast: Cast][] = [
  ['services.*.configs.#.mode', toWhole],
  ['services.*.secrets.#.mode', toWhole],
  ['services.*.healthcheck.retries', toWhole],
  ['services.*.healthcheck.disable', toTruth],
  ['services.*.init', toTruth],
  ['services.*.deploy.replicas', toWhole],
  ['services.*.deploy.update_config.parallelism', toWhole],
  ['services.*.deploy.update_config.max_failure_ratio', toNumber],
  ['services.*.deploy.rollback_config.parallelism', toWhole],
  ['services.*.deploy.rollback_config.max_failure_ratio', toNumber],
  ['services.*.deploy.restart_policy.max_attempts', toWhole],
  ['services.*.deploy.placement.max_replicas_per_node', toWhole],
  ['services.*.deploy.resources.limits.pids', toWhole],
  ['services.*.ports.#.target', toWhole],
  ['services.*.ports.#.published', toWhole],
  ['services.*.ulimits.*', toWhole],
  ['services.*.ulimits.*.hard', toWhole],
  ['services.*.ulimits.*.soft', toWhole],
  ['services.*.read_only', toTruth],
  ['services.*.stdin_open', toTruth],
  ['services.*.tty', toTruth],
  ['services.*.volumes.#.read_only', toTruth],
  ['services.*.volumes.#.volume.nocopy', toTruth],
  ['services.*.volumes.#.tmpfs.size', toWhole],
  ['networks.*.external', toTruth],
  ['networks.*.internal', toTruth],
  ['networks.*.attachable', toTruth],
  ['volumes.*.external', toTruth],
  ['secrets.*.external', toTruth],
  ['configs.*.external', toTruth],
]
const castSteps = casts.map(([pattern, cast]) => ({ steps: pattern.split('.'), cast }))

const castAt = (path: Path): Cast | undefined =>
  castSteps.find(
    ({ steps }) =>
      steps.length === path.length &&
      steps.every((step, at) => (step === '#' ? typeof path[at] === 'number' : step === '*' || step === path[at])),
  )?.cast
