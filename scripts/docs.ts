/**
 * Writes the generated pages of `docs/reference/` from the registries in `src/model/`: `node scripts/docs.ts`. With `--check` it
 * writes nothing and fails when a page differs. `test/house/docs.test.ts` does the same check.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventCodes, eventText, findingCodes, type EventCode, type EventPayload } from '../src/model/codes.ts'
import { environmentOf, resolveConfig, settingNames, shownValue, type SettingName } from '../src/model/config.ts'
import { errorCodes } from '../src/model/errors.ts'
import { rateVariables } from '../src/model/rate-settings.ts'
import { sweepVariables } from '../src/model/sweep-settings.ts'

/** Payloads that between them show every text of a code. The type makes a new code or field without a sample an error. */
const samples: { [C in EventCode]: readonly [EventPayload<C>, ...EventPayload<C>[]] } = {
  'lease.created': [{ provider: 'process', ttlSeconds: 5400, idleSeconds: 1800 }],
  'lease.active': [
    { cloudId: 'qk3v8xw2m1tz-1', adopted: false },
    { cloudId: 'qk3v8xw2m1tz-1', adopted: true },
  ],
  'lease.released': [{ retained: false }, { retained: true }, { retained: false, returned: true }],
  'lease.expired': [{ clock: 'idle' }, { clock: 'ttl' }],
  'lease.idle': [{ idleSeconds: 1800, leftSeconds: 360, endsAt: '2026-01-31T12:30:00.000Z' }],
  'lease.failed': [{ code: 'create_interrupted', error: 'the create was interrupted, and nothing of it exists' }],
  'lease.cancelled': [{}],
  'attempt.uncertain': [{ number: 1, error: 'creating calm-otter gave no answer within 60000 ms' }],
  'attempt.found': [
    { number: 1, cloudId: 'qk3v8xw2m1tz-1', verdict: 'adopt' },
    { number: 1, cloudId: 'qk3v8xw2m1tz-1', verdict: 'take-back' },
  ],
  'attempt.absent': [{ number: 1 }],
  'attempt.late': [{ number: 1, cloudId: 'qk3v8xw2m1tz-1' }],
  'removal.opened': [{ cause: 'released' }],
  'removal.accepted': [{ cloudId: 'qk3v8xw2m1tz-1' }],
  'removal.failed': [{ failures: 2, error: 'permission denied: kill', retryAt: '2026-01-31T12:05:00.000Z' }],
  'removal.held': [{ by: 'freeze' }],
  'removal.gone': [{ cloudId: 'qk3v8xw2m1tz-1', proof: 'its first process and its folder are gone' }],
  'removal.member-gone': [{ cloudId: 'i-0000001a', proof: 'i-0000001a is terminated', left: 3 }],
  'removal.continued': [{ cause: 'orphan.gave-up' }],
  'removal.absence-acknowledged': [{ missing: 'nic n-0000001b', reason: 'replaced by hand on Monday' }],
  'removal.acknowledgement-lapsed': [{ missing: 'nic n-0000001b', by: 'ann' }],
  'removal.overtaken': [{ cloudId: 'i-0000002a' }],
  'removal.left-to-sweeps': [{ cloudId: 'i-0000002a' }],
  'removal.closed': [
    { reason: 'the account is gone', left: 'disk d-0000001c in sim-a' },
    { reason: 'the account is gone', left: 'nobody knows what' },
  ],
  'removal.dropped': [{ why: 'its labels or tags have changed' }],
  'removal.needs-person': [{ error: 'no identity was recorded, and its look-up finds nothing' }],
  'terminate.gave-up.cleanup-retries': [
    { name: 'calm-otter', id: 'in_0190f3c2a1b47d4c8e5f60718293a4b5', backend: 'local', minutes: 15, error: 'permission denied: kill' },
  ],
  'terminate.gave-up.manual': [
    {
      name: 'calm-otter',
      id: 'in_0190f3c2a1b47d4c8e5f60718293a4b5',
      backend: 'local',
      minutes: 15,
      error: 'permission denied: kill',
      how: 'box qk3v8xw2m1tz-1 in local of process:0f3a',
    },
  ],
  'finding.opened': [{ code: 'contradiction', message: 'its ref tag no longer says that it is ours' }],
  'finding.changed': [{ code: 'contradiction', message: 'its ref tag no longer says that it is ours' }],
  'finding.standing': [{ code: 'orphan', message: 'Its owner has ended.', timesSeen: 3 }],
  'finding.resolved': [{ code: 'contradiction' }],
  'plan.approved': [{ removals: 60, reason: 'a test cluster was torn down' }],
  'plan.begun': [{ begun: 58, dropped: 2, pending: 0 }],
  'retain.overdue': [{ retainedAt: '2026-01-30T12:00:00.000Z', retainUntil: '2026-01-31T12:00:00.000Z' }],
  'clock.downtime': [{ gapSeconds: 3600, moved: 12 }],
  'clock.jumped': [{ seconds: 900 }],
  'clock.agreed': [{}],
  'fleet.created': [{ backend: 'local', size: 3, ttlSeconds: 5400 }],
  'fleet.scaled': [{ from: 3, to: 5 }],
  'fleet.paused': [{}],
  'fleet.resumed': [{ after: 'held' }],
  'fleet.held': [{ why: '3 of its boxes ended within 30 min of being made, without having served anybody' }],
  'fleet.deleted': [{}],
  'fleet.box-ready': [
    { cloudId: 'qk3v8xw2m1tz-1', adopted: false },
    { cloudId: 'qk3v8xw2m1tz-1', adopted: true },
  ],
  'fleet.box-returned': [{ cloudId: 'qk3v8xw2m1tz-1', proof: 'nothing is left in it: no process but its clock, and an empty folder' }],
  'fleet.wipe-failed': [{ cloudId: 'qk3v8xw2m1tz-1', why: 'still there: process 4711' }],
  'hold.added': [
    { reason: 'looking into a failure', until: null },
    { reason: 'looking into a failure', until: '2026-01-31T12:00:00.000Z' },
  ],
  'hold.removed': [{}],
  'installation.stopped': [
    { scope: '*', why: 'its file is not the one that was used last: it was copied or restored' },
    { scope: 'machine:0f3a', why: 'a listing shows 1 resource of ours with a ref that no project here knows' },
  ],
  'installation.adopted': [{ epoch: 18, reason: 'restored after the disk of the old machine failed' }],
  'installation.forked': [{ from: 'k3f9a1bc', to: 'p7d2e4xy', reason: 'a copy for trying the new version' }],
  'installation.key-rotated': [{ key: 'q4w8e1', reason: 'somebody left' }],
  'sweep.let-pass': [
    { why: 'of 40 refs that the ledger says exist only 3 were seen or proved absent', reason: 'the account was emptied on purpose' },
  ],
  'freeze.added': [
    { scope: '*', reason: 'provider outage' },
    { scope: 'machine:0f3a', reason: 'provider outage' },
  ],
  'freeze.removed': [{ scope: '*' }, { scope: 'machine:0f3a' }],
  'token.created': [{ role: 'user' }],
  'token.revoked': [{}],
  'project.created': [{}],
  'project.deleted': [{}],
  'backend.created': [
    { provider: 'process', scope: null },
    { provider: 'process', scope: 'machine:0f3a' },
  ],
  'backend.deleted': [{}],
}

/** What each setting is, in a sentence. */
const settings: Record<SettingName, { flag: string | null; text: string }> = {
  data: { flag: '--data', text: 'The data folder: the SQLite database, `admin.token`, boxes and claims. Made with mode 0700.' },
  host: { flag: '--host', text: 'The address that `serve` listens on.' },
  port: { flag: '--port', text: 'The port that `serve` listens on; 0 takes any free one.' },
  url: {
    flag: '--url',
    text: 'Where the commands find the coordinator. `none` says that there is none. Not set: the coordinator of this data folder, if the folder has an `admin.token`.',
  },
  token: {
    flag: null,
    text: 'The bearer token of the commands. Not set: `admin.token` of the data folder, and only for a coordinator on this machine. There is no flag: a command line can be read by others.',
  },
  databaseUrl: {
    flag: null,
    text: 'A PostgreSQL database (14 or newer). Not set: SQLite in the data folder. There is no flag, for the same reason.',
  },
  logLevel: { flag: '--log-level', text: 'The least level that `serve` logs: trace, debug, info, warn, error or silent.' },
  eventsTtlSeconds: {
    flag: null,
    text: 'How long events are kept, in seconds or as a duration such as `30d`. 0 or less stores none; they are still logged. The events of a deletion and the audit records are kept for ever, at any setting.',
  },
  retainLeasesDays: {
    flag: null,
    text: 'How long a lease that has ended and whose absence is proved, and its instance, keep their rows, in days. After that `explain` and `receipt` still tell of them; `list` does not, and their request keys are forgotten.',
  },
  retainFindingsDays: { flag: null, text: 'How long resolved findings are kept, in days.' },
  retainSweepsDays: {
    flag: null,
    text: 'How long certificates of sweeps are kept, in days. The newest of each backend, and those that a removal stands on, are kept for ever.',
  },
  limitPerSweep: {
    flag: null,
    text: 'How many removals one sweep may begin without a person. A plan beyond it waits for `leasehold approve`.',
  },
  limitSharePercent: {
    flag: null,
    text: 'How many per cent of the groups of ours in an account one sweep may take back without a person; one removal is always allowed.',
  },
  limitPerDay: { flag: null, text: 'How many removals sweeps may begin in one account in 24 h without a person.' },
  maxLeasesPerProject: {
    flag: null,
    text: 'How many live leases a project may have. One more is refused with 429 `cap_reached`, which says what to wait for. Not set: any number.',
  },
  maxLeasesPerOwner: {
    flag: null,
    text: 'How many live leases one owner (the name of a token) may have in a project. Not set: any number.',
  },
  maxCreatesPerProject: { flag: null, text: 'How many creates of a project may be under way at once. Not set: any number.' },
  maxCreatesPerOwner: { flag: null, text: 'How many creates of one owner in a project may be under way at once. Not set: any number.' },
  fourEyes: { flag: null, text: 'On: nobody approves a plan that they made themselves.' },
  project: { flag: '--project', text: 'The project of new leases. Not set: the project of the token, else `default`.' },
}

const head = (source: string): string => `<!-- Made by \`node scripts/docs.ts\` from \`${source}\`. Change that, not this page. -->\n\n`
const cell = (text: string): string => text.replaceAll('|', '\\|')
const table = (titles: readonly string[], rows: readonly (readonly string[])[]): string =>
  [titles, titles.map(() => '---'), ...rows].map((row) => `| ${row.map(cell).join(' | ')} |\n`).join('')
const code = (text: string): string => `\`${text}\``

const errorsPage = (): string =>
  `${head('src/model/errors.ts')}# Errors

Every refusal of the API is a JSON object with a stable \`error\` code and a \`message\` for people: what happened, to what, and what to do next.
Some carry more fields. Programs compare the code and never the message.

    {"error": "lease_expired", "message": "lh_0123456789ab: its time is over, and a heartbeat does not revive it; create a new lease"}

${table(
  ['code', 'HTTP', 'meaning'],
  Object.entries(errorCodes).map(([name, { status, text }]) => [code(name), String(status), text]),
)}
## Exit codes of the commands

| exit | meaning |
| --- | --- |
| 0 | it went through |
| 1 | anything without a number of its own; \`doctor\` with an error among its checks; \`admin lease-audit --fail-on-live\` that found something |
| 2 | wrong usage, bad input (400, 413, 422), a claim of another repository, a claim file that can't be used |
| 4 | not found, or not yours (403, 404) |
| 5 | a wait timed out |
| 7 | a removal failed; it is tried again |

\`leasehold run\` exits with its command's status: 126 not executable, 127 not found, 128 + n ended by signal n. Its own failures are 125, but for wrong
usage, bad input and a claim of another repository, which are 2.
`

const messages = <C extends EventCode>(name: C): string[] =>
  (samples[name] as readonly EventPayload<C>[]).map((payload) => eventText(name, payload))

const eventsPage = (): string =>
  `${head('src/model/codes.ts')}# Events and findings

An event says what happened, once. It is written in the same transaction as the change that it reports. \`leasehold events\` reads the feed, oldest first;
\`--target ID|NAME\` narrows it to what concerns one thing, also when that is long gone; \`--follow\` stays. Each event has a \`seq\`: a reader goes on
after the last one it saw and misses nothing. \`level\` is info, warning or error. The actor and the targets have fields of their own and are not in the text.

${table(
  ['code', 'level', 'text, by example', 'payload'],
  (Object.keys(eventCodes) as EventCode[]).map((name) => [
    code(name),
    eventCodes[name].level,
    messages(name).join('<br>'),
    Object.keys(samples[name][0]).map(code).join(', '),
  ]),
)}
## Findings

A finding says what stands and needs time or a person. It is one row; seeing the same again counts in \`timesSeen\` and writes no event, a change writes
\`finding.changed\`. \`leasehold findings\` lists them. \`retained-overdue\` is resolved when the box is released with delete or is gone,
\`removal-needs-person\` when what it is about is proved gone. A \`contradiction\` stays open.

${table(
  ['code', 'meaning'],
  Object.entries(findingCodes).map(([name, text]) => [code(name), text]),
)}`

const defaultOf = (name: SettingName): string => {
  const result = resolveConfig({ flags: {}, environment: {}, file: null, home: '~', absolute: (path) => path })
  if (!result.ok) throw new Error(result.problem)
  const value = shownValue(name, result.settings[name].value)
  return value === null ? 'not set' : code(String(value))
}

const configurationPage = (): string =>
  `${head('src/model/config.ts')}# Configuration

Each setting comes from the first of: its flag, its environment variable, the file \`leasehold.yml\`, its default. \`leasehold config\` shows every value and
where it came from. An empty environment variable counts as not set.

${table(
  ['key in the file', 'environment', 'flag', 'default', 'what it is'],
  settingNames.map((name) => [
    code(name),
    code(environmentOf(name)),
    settings[name].flag === null ? 'none' : code(settings[name].flag),
    defaultOf(name),
    settings[name].text,
  ]),
)}
The default of \`data\` is \`$XDG_STATE_HOME/leasehold\` where that variable holds an absolute path.

## The file

The file is the one named by \`--config\`, else \`./leasehold.yml\`, else \`~/.config/leasehold/leasehold.yml\`: one is read, they are not merged. It holds
\`key: value\` lines. An unknown key or a bad value ends the command with exit code 2, naming the file and the line, also where a flag or a variable would
have hidden it. A key without a value is the default. A relative \`data\` is relative to the file's folder.

    # leasehold.yml
    port: 7500
    data: ./state

## Sweeps

These are variables of the environment that \`serve\` is started in, and no keys of the file. \`leasehold config\` shows what \`serve\` would take from the shell
that it is run in, \`leasehold status\` what a running coordinator has. \`<PROVIDER>\` is the provider's name in capitals: \`PROCESS\`, \`SIMULATED\`. A
provider's own variable goes before that of all.

${table(
  ['environment', 'default', 'what it is'],
  sweepVariables(['<provider>']).map((one) => [code(one.name.replace('__PROVIDER__', '_<PROVIDER>_')), one.fallback, one.text]),
)}
What sweeps may take back without a person are keys of the file: \`limitPerSweep\`, \`limitSharePercent\`, \`limitPerDay\` and \`fourEyes\`.

A variable that begins with \`LEASEHOLD_\` and is read by nothing is probably misspelt: \`serve\`, \`config\` and \`doctor\` warn of it with the nearest name. Where it looks like
a rule of what is deleted (mode, grace, limits, \`FOUR_EYES\`, anything of sweeps), \`serve\` refuses to start with exit 2.

## Rates

Variables as those above. They bound what all replicas together ask of one account; what a provider throttles is slowed down by itself, whatever is set
([operating](../guide/operating.md#rates)).

${table(
  ['environment', 'default', 'what it is'],
  rateVariables(['<provider>']).map((one) => [code(one.name.replace('__PROVIDER__', '_<PROVIDER>_')), one.fallback, one.text]),
)}
## Other variables

| variable | what it does |
| --- | --- |
| \`XDG_STATE_HOME\` | where the data folder is by default |
| \`XDG_CACHE_HOME\` | where Node's compiled code is kept: \`leasehold/compiled\` in it, else in \`~/.cache\` |
| \`NO_COLOR\` | no colours, also on a terminal |
| \`LEASEHOLD_NODE\` | for a checkout: the Node.js that \`bin/leasehold\` begins with |
| \`LEASEHOLD_DOCKER_HOST\` | for \`serve\`: the \`host\` of \`docker\` backends that set none (see [providers](providers.md)) |
| \`LEASEHOLD_PROCESS_MODE\` | for \`serve\`: the \`mode\` of \`process\` backends that set none (see [providers](providers.md)) |

Inside a box these are set: \`LEASEHOLD_LEASE_TOKEN\` (may beat and release this lease, nothing else), \`LEASEHOLD_LEASE_ID\`, and the tags \`LEASEHOLD_REF\`,
\`LEASEHOLD_INSTALLATION\` and \`LEASEHOLD_ATTEMPT\`.
`

/** The generated pages: path from the root of the checkout to text. */
export const pages = (): Record<string, string> => ({
  'docs/reference/errors.md': errorsPage(),
  'docs/reference/events.md': eventsPage(),
  'docs/reference/configuration.md': configurationPage(),
})

/** Which pages differ from what `read` answers for their path; null: there is no such file. */
export const stalePages = (read: (path: string) => string | null): string[] =>
  Object.entries(pages())
    .filter(([path, text]) => read(path) !== text)
    .map(([path]) => path)

export const flagOf = (name: SettingName): string | null => settings[name].flag

const root = join(import.meta.dirname, '..')

/** As it is on the disk; null where there is no such file. */
export const readPage = (path: string): string | null => (existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : null)

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    for (const path of stalePages(readPage)) {
      process.stderr.write(`${path} is not up to date: run \`node scripts/docs.ts\`\n`)
      process.exitCode = 1
    }
  } else for (const [path, text] of Object.entries(pages())) writeFileSync(join(root, path), text)
}
