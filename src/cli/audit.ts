/** `leasehold audit list|verify`: what was deleted and by whom switches were moved, and whether anything of it was changed since. */
import type { Command } from 'commander'
import { counted } from '../lib/counted.ts'
import { parsePoint, pointText } from '../model/audit-chain.ts'
import { shortPlanId } from '../model/limits.ts'
import type { AuditDanglingView, AuditRecordView, AuditVerificationView } from '../model/wire-audit.ts'
import { act, type Cli } from './support/cli.ts'
import { CliError, usageError } from './support/errors.ts'
import type { Client } from './support/http.ts'
import { examples, wholeNumber, withConnection, withJson } from './support/options.ts'
import { paint, relative } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  defineVerify(command.command('verify'), cli)
  defineList(command.command('list'), cli)
}

const deadlineMs = 300_000
/** A second or so each: between two the progress is shown. */
const recordsACall = 20_000
const mostDangling = 100

const point = (name: string, flag: unknown): string | undefined => {
  if (typeof flag !== 'string') return undefined
  if (parsePoint(flag) === null) throw usageError(`--${name} must be a number and a hash of 64 hex digits, as SEQ:HASH`)
  return flag
}

/** Call after call until the end or the first thing that is wrong, as one answer. */
const verifyAll = async (
  client: Client,
  given: { from: string | undefined; expect: string | undefined },
  progress: (now: AuditVerificationView) => void,
): Promise<AuditVerificationView> => {
  let whole: AuditVerificationView | null = null
  let from = given.from
  for (;;) {
    const query = { from, expect: given.expect, limit: recordsACall }
    const { verification } = await client.get<{ verification: AuditVerificationView }>('/v1/admin/audit/verify', { query, deadlineMs })
    const before: AuditVerificationView | null = whole
    const merged: AuditVerificationView =
      before === null
        ? verification
        : {
            ...verification,
            from: before.from,
            checked: before.checked + verification.checked,
            dangling: [...before.dangling, ...verification.dangling].slice(0, mostDangling),
            danglingCount: before.danglingCount + verification.danglingCount,
          }
    progress(merged)
    if (merged.complete || !merged.ok) return merged
    whole = merged
    from = pointText(merged.to)
  }
}

const danglingText = (cli: Cli, one: AuditVerificationView): string => {
  if (one.danglingCount === 0) return ''
  const more = one.danglingCount - one.dangling.length
  const head = `\n${counted(one.danglingCount, 'call')} without a recorded answer; what became of ${one.danglingCount === 1 ? 'it' : 'them'} shows in the removal:\n`
  const table = cli.table<AuditDanglingView>(
    [
      { title: 'SEQ', cell: (row) => row.seq, align: 'right' },
      { title: 'AT', cell: (row) => row.at },
      { title: 'REMOVAL', cell: (row) => row.removalID },
      { title: 'STATE', cell: (row) => row.removalState ?? 'there is none' },
    ],
    one.dangling,
  )
  return `${head}${table}${more > 0 ? `and ${more} more\n` : ''}`
}

const describe = (cli: Cli, one: AuditVerificationView): string => {
  const verdict = one.ok
    ? paint(cli.io.colours, 'green', 'whole')
    : paint(cli.io.colours, 'red', one.problem?.seq == null ? 'not well' : `broken at ${one.problem.seq}`)
  const now = cli.io.now()
  const waiting = one.unsealed.count === 0 ? 'none' : `${one.unsealed.count}, the oldest ${relative(one.unsealed.oldestAt, now)}`
  const fields = cli.fields([
    ['chain', verdict],
    ['what', one.problem?.what],
    ['wrong', one.problem?.message],
    ['verified', `${counted(one.checked, 'record')}, ${one.from.seq === 0 ? 'from the first' : `after ${one.from.seq}`} to ${one.to.seq}`],
    ['head', pointText(one.head)],
    ['sealed', one.sealedAt],
    ['not sealed yet', waiting],
  ])
  const keep =
    one.ok && one.head.seq > 0
      ? `\nKeep the head somewhere else; later this shows that nothing up to it was changed or cut off:\n  leasehold audit verify --expect ${pointText(one.head)}\n`
      : ''
  return `${fields}${danglingText(cli, one)}${keep}`
}

const defineVerify = (command: Command, cli: Cli): void => {
  command
    .summary('verify the chain over the audit')
    .description(
      'Works out every hash of the audit anew. Exit 0 if nothing was changed, left out, added or cut off, 1 if something was, with the first place. A call without a recorded answer is shown, and is no failure as long as its removal explains itself.',
    )
    .option('--expect <seq:hash>', 'a head that was kept elsewhere: the chain must have it')
    .option('--from <seq:hash>', 'verified before: go on from there')
  withJson(withConnection(command))
  examples(command, 'audit verify', 'audit verify --json', `audit verify --expect 1042:${'0a'.repeat(32)}`)
  act(command, async (flags) => {
    const given = { from: point('from', flags['from']), expect: point('expect', flags['expect']) }
    const { client } = await cli.session(flags)
    const shown = cli.io.terminal === true && !flags.json
    let told = false
    const result = await verifyAll(client, given, (now) => {
      if (!shown || now.complete || !now.ok) return
      told = true
      cli.io.err(`\r${now.to.seq} of ${now.head.seq} records verified`)
    })
    if (told) cli.io.err('\r\x1b[K')
    cli.show(flags, result, (one) => describe(cli, one))
    if (!result.ok) throw new CliError(result.problem?.message ?? 'the audit is not whole')
  })
}

const textIn = (body: Record<string, unknown>, ...names: string[]): string | null => {
  for (const name of names) if (typeof body[name] === 'string') return body[name]
  return null
}

const inner = (body: Record<string, unknown>, name: string): Record<string, unknown> =>
  typeof body[name] === 'object' && body[name] !== null ? (body[name] as Record<string, unknown>) : {}

/** A plan by its short id, as everywhere; of a hold what it was on. */
const onWhat = (body: Record<string, unknown>): string => {
  const plan = textIn(body, 'plan')
  if (plan !== null) return ` ${shortPlanId(plan)}`
  const [hold, type, id] = [textIn(body, 'hold'), textIn(body, 'targetType'), textIn(body, 'targetID')]
  if (hold !== null && id !== null) return ` ${hold} on ${type ?? 'target'} ${id}`
  return ''
}

/** One line on what a record says. */
const gist = ({ kind, body }: AuditRecordView): string => {
  switch (kind) {
    case 'intent':
      return `about to remove ${textIn(inner(body, 'identity'), 'nativeId') ?? 'it'} (${textIn(body, 'cause') ?? 'no cause'})`
    case 'outcome':
      return [textIn(body, 'kind') ?? 'answered', textIn(body, 'error', 'why', 'by', 'permission')].filter((one) => one !== null).join(': ')
    case 'proof':
      return `${textIn(inner(body, 'absent'), 'nativeId') ?? 'it'} is absent: ${textIn(body, 'proof') ?? 'no proof given'}`
    case 'operator':
      return [`${textIn(body, 'action') ?? 'did something'}${onWhat(body)}`, textIn(body, 'reason')]
        .filter((one) => one !== null && one !== '')
        .join(': ')
  }
}

const defineList = (command: Command, cli: Cli): void => {
  command
    .summary('list audit records')
    .description('Lists what was about to be deleted, what came of it, by what absence was known, and what operators did; newest first.')
    .option('--removal <id>', 'only of this removal')
    .option('--project <project>', 'only of this project')
    .option('--limit <n>', 'at most so many (default 100)', wholeNumber(1, 500))
  withJson(withConnection(command))
  examples(command, 'audit list', 'audit list --removal rm_0190f3c2a1b47d4c8e5f60718293a4b5 --json')
  act(command, async (flags) => {
    const { project, ...rest } = flags
    const { client } = await cli.session(rest)
    const query = { removal: flags['removal'] as string, project: project as string, limit: flags['limit'] as number }
    const { records } = await client.get<{ records: AuditRecordView[] }>('/v1/admin/audit', { query })
    cli.list(
      flags,
      records,
      [
        { title: 'SEQ', cell: (one) => one.seq ?? 'not sealed', align: 'right' },
        { title: 'AT', cell: (one) => one.at },
        { title: 'KIND', cell: (one) => one.kind },
        { title: 'REMOVAL', cell: (one) => one.removalID },
        { title: 'REF', cell: (one) => one.ref },
        { title: 'ACTOR', cell: (one) => one.actor },
        { title: 'WHAT', cell: gist },
      ],
      'no audit records',
    )
  })
}
