/** Sweeps for people: the coverage matrix, the verdicts with their reasons, and what becomes of the orphans. */
import { counted } from '../../lib/counted.ts'
import { formatDuration } from '../../lib/duration.ts'
import { verdictReasons } from '../../model/verdict-reasons.ts'
import type { SweepCellView, SweepOrphanView, SweepView } from '../../model/wire.ts'
import type { Cli } from './cli.ts'
import { paint, printable, relative, type Style } from './text.ts'

export const outcomeStyle = (outcome: string | null): Style | null =>
  outcome === 'clean' ? 'green' : outcome === 'unsettled' ? 'yellow' : outcome === 'failed' ? 'red' : null

const reasonText = (code: string): string =>
  Object.hasOwn(verdictReasons, code) ? verdictReasons[code as keyof typeof verdictReasons].text : ''

const matrix = (cli: Cli, cells: readonly SweepCellView[]): string => {
  const locations = [...new Set(cells.map((cell) => cell.location))]
  const kinds = [...new Set(cells.map((cell) => cell.kind))]
  const at = (location: string, kind: string): string => {
    const cell = cells.find((one) => one.location === location && one.kind === kind)
    return cell === undefined ? '-' : cell.state === 'complete' ? `complete (${cell.resources})` : `${cell.state} (${cell.resources})`
  }
  const table = cli.table(
    [
      { title: 'COVERAGE', cell: (location: string) => location },
      ...kinds.map((kind) => ({ title: kind, cell: (location: string) => at(location, kind) })),
    ],
    locations,
  )
  const notes = cells
    .filter((cell) => cell.why !== null)
    .map(
      (cell) =>
        `${printable(cell.location)}, ${printable(cell.kind)}: ${cell.state === 'denied' ? `permission ${printable(cell.why ?? '')} is missing` : `${cell.state}: ${printable(cell.why ?? '')}`}\n`,
    )
  return `${table}${notes.join('')}`
}

const verdicts = (cli: Cli, sweep: SweepView): string => {
  const rows = Object.entries(sweep.verdicts).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const head = `${counted(sweep.counts.listed, 'resource')} listed; ${counted(sweep.counts.groups, 'group')} judged one by one; the ledger expects ${counted(sweep.counts.expected, 'box', 'boxes')}, and ${sweep.counts.seen} ${sweep.counts.seen === 1 ? 'was' : 'were'} seen\n`
  if (rows.length === 0) return head
  return `${head}${cli.table(
    [
      { title: 'GROUPS', cell: ([, count]: [string, number]) => count, align: 'right' as const },
      { title: 'VERDICT', cell: ([reason]: [string, number]) => reason },
      { title: 'REASON', cell: ([reason]: [string, number]) => reasonText(reason) },
    ],
    rows,
  )}`
}

/** What the plan does, did, or would do. */
const planText = (sweep: SweepView): string => {
  const { plan } = sweep
  const dry = sweep.state === 'dry-run'
  if (plan === null) return sweep.mode === 'delete' || dry ? '' : `mode ${sweep.mode}: nothing is taken back\n`
  const would = sweep.mode === 'delete' ? 'a sweep now would' : `mode ${sweep.mode} takes nothing back; delete mode would`
  const why = [plan.why, plan.whatToDo].filter((one) => one !== null).join('; ')
  if (plan.kind === 'wait')
    return `${dry ? `${would} begin nothing: the` : 'nothing was begun: the'} plan ${plan.id} of ${plan.waiting} waits: ${printable(why)}\n`
  const lines = plan.removals.map((target) => `  ${printable(target)}\n`).join('')
  return `${dry ? `${would} begin to take back` : 'began to take back'} ${plan.removals.length}:\n${lines}${why === '' ? '' : `${printable(why)}\n`}`
}

/** The plan's own text stands above the table, once. */
const stateOf = (one: SweepOrphanView, planId: string | null, nowMs: number): string => {
  if (one.removalID !== null) return `being taken back by ${one.removalID}`
  if (one.heldBack.length === 0) return 'nothing holds it back'
  return one.heldBack
    .map(({ what, until }) => {
      if (planId !== null && what.startsWith(`plan ${planId} `)) return 'the plan above'
      return until === null ? what : `${what}, until ${until} (${relative(until, nowMs)})`
    })
    .join('; ')
}

const orphans = (cli: Cli, rows: readonly SweepOrphanView[], planId: string | null): string =>
  rows.length === 0
    ? ''
    : cli.table(
        [
          { title: 'ORPHAN', cell: (one) => one.target },
          { title: 'NAME', cell: (one) => one.name },
          { title: 'REASON', cell: (one) => one.reason },
          { title: 'WAITS FOR', cell: (one) => stateOf(one, planId, cli.io.now()) },
        ],
        rows,
      )

/** The whole certificate. */
export const describeSweep = (cli: Cli, sweep: SweepView): string => {
  const place = `backend ${sweep.project}/${sweep.backend}${sweep.provider === null ? '' : ` (${sweep.provider})`}`
  if (sweep.state === 'pending') return `${printable(place)}: not ended yet; "leasehold sweeps" shows it later\n`
  const outcome = paint(cli.io.colours, outcomeStyle(sweep.outcome) ?? 'dim', sweep.outcome ?? 'unknown')
  const took =
    sweep.startedAt !== null && sweep.endedAt !== null ? formatDuration(Date.parse(sweep.endedAt) - Date.parse(sweep.startedAt)) : null
  const head = cli.fields([
    ['sweep', sweep.id ?? 'dry run: nothing was written'],
    ['account', sweep.scope],
    ['mode', sweep.mode],
    ['started', sweep.startedAt],
    ['took', took],
    ['listed because', sweep.reasons.join(', ')],
    ['not clean because', sweep.why.join('; ')],
    ['error', sweep.error],
    ['guard on counts', sweep.guard === 'none' ? null : sweep.guard],
  ])
  const coverage = sweep.cells.length === 0 ? '' : `\n${matrix(cli, sweep.cells)}\n${verdicts(cli, sweep)}`
  const rest = [planText(sweep), orphans(cli, sweep.orphans ?? [], sweep.plan?.id ?? null)].filter((part) => part !== '').join('\n')
  return `${printable(place)}: ${outcome}\n${head}${coverage}${rest === '' ? '' : `\n${rest}`}`
}
