/** Engines that break one rule on purpose, each through what every engine is given anyway: its store, its provider, its clock. */
import type { CompiledQuery, QueryResult } from 'kysely'
import type { FoundResource, ListedResource, Provider } from '../../../src/providers/contract.ts'
import { kyselyOn } from '../../../src/store/connection.ts'
import type { Db, Session, Store, Tx } from '../../../src/store/store.ts'
import type { Mutant } from './crew.ts'

type Answer = QueryResult<never>
/** Stands between an engine and its statements. */
type Between = (query: CompiledQuery, go: (query: CompiledQuery) => Promise<Answer>) => Promise<Answer>

const nothing: Answer = { rows: [], numAffectedRows: 1n }

const between =
  (middle: Between, after?: (tx: Tx) => Promise<void>) =>
  (store: Store): Store => {
    const wrapped = new Map<Db, Db>()
    const wrap = (db: Db): Db => {
      const known = wrapped.get(db) ?? kyselyOn('sqlite', (query) => middle(query, (one) => db.executeQuery(one) as Promise<Answer>))
      wrapped.set(db, known)
      return known
    }
    return {
      dialect: store.dialect,
      description: store.description,
      now: () => store.now(),
      read: (body) => store.read((session: Session) => body({ ...session, db: wrap(session.db) })),
      write: (body) =>
        store.write(async (tx) => {
          const value = await body({ ...tx, db: wrap(tx.db) })
          await after?.(tx)
          return value
        }),
      close: () => store.close(),
    }
  }

/** Statements that it believes to have made, and has not. */
const leavesOut = (which: RegExp): Mutant => ({ store: between(async (query, go) => (which.test(query.sql) ? nothing : go(query))) })

const rowsAs = (which: RegExp, change: (row: Record<string, unknown>) => Record<string, unknown>): Mutant => ({
  store: between(async (query, go) => {
    const answer = await go(query)
    return which.test(query.sql) ? { ...answer, rows: answer.rows.map(change) as never[] } : answer
  }),
})

/** Of all that may stand in a removal's way. */
const overlooks = (what: string): Mutant => ({
  store: between(async (query, go) => {
    const answer = await go(query)
    if (!query.sql.startsWith("select 'hold' as what")) return answer
    return { ...answer, rows: answer.rows.filter((row) => (row as { what: string }).what !== what) }
  }),
})

const pairOfFence = `(id, lock_fence) in (select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(?)) and lock_owner is not null`
const withoutFence: Between = (query, go) =>
  go({ ...query, sql: query.sql.replace(pairOfFence, `id in (select json_extract(value, '$[0]') from json_each(?))`) })

const pair = `(id, lock_fence) in (select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(?)) and lock_owner = ?`
const keepsLocks: Between = (query, go) =>
  go({
    ...query,
    sql: query.sql.replace(pair, `id in (select json_extract(value, '$[0]') from json_each(?)) and (lock_owner = ? or 1 = 1)`),
  })

const taggedIsMade = <R extends FoundResource | ListedResource>(one: R): R => ({ ...one, fixedAttemptToken: one.tags.attempt })

export interface Named {
  breaks: string
  who: string
  /** Where to begin: worlds before it let it pass when it was written. */
  from?: number
  mutant: Mutant
}

export const mutants: readonly Named[] = [
  { breaks: 'I1', who: 'reserves a ref without its ledger entry', mutant: leavesOut(/^insert into "ledger"/) },
  { breaks: 'I1', who: 'calls before it has said so', mutant: leavesOut(/^update "attempts" set "called_at"/) },
  {
    breaks: 'I2',
    who: 'tidies the ledger of what is closed',
    mutant: {
      store: between(
        (query, go) => go(query),
        async (tx) => void (await tx.db.deleteFrom('ledger').where('owner_closed_at', 'is not', null).execute()),
      ),
    },
  },
  {
    breaks: 'I3',
    who: 'does not compare the fence',
    from: 46,
    mutant: { store: between(withoutFence) },
  },
  {
    breaks: 'I3',
    who: 'stood still, and takes its lock for its own all the same, without asking once more before a call',
    mutant: {
      monotonic: 'stands',
      // It asks in vain, and its renewals tell it nothing; what is written at the end is still compared.
      store: (store) => ({ ...between(withoutFence)(store), write: (body) => between(keepsLocks)(store).write(body) }),
    },
  },
  {
    breaks: 'I4',
    who: 'writes by the wall clock',
    mutant: {
      store: (store) => ({
        dialect: store.dialect,
        description: store.description,
        now: () => store.now(),
        read: (body) => store.read(body),
        write: (body) => store.write((tx) => body({ ...tx, now: Date.now() })),
        close: () => store.close(),
      }),
    },
  },
  { breaks: 'I6', who: 'takes a tag for a fact fixed at creation', mutant: { provider: trusting } },
  { breaks: 'I7', who: 'writes no intents', mutant: leavesOut(/^insert into "?audit/) },
  {
    breaks: 'I9',
    who: 'takes a lease that has ended for one that waits',
    mutant: rowsAs(/from "?leases"?/, (row) =>
      'request_key' in row && (row['state'] === 'failed' || row['state'] === 'released')
        ? { ...row, state: 'provisioning', cancelled_at: null }
        : row,
    ),
  },
  {
    breaks: 'I10',
    who: 'does not ask for holds',
    mutant: overlooks('hold'),
  },
  {
    breaks: 'I10',
    who: 'does not ask for freezes',
    mutant: overlooks('freeze'),
  },
  { breaks: 'I8', who: 'knows no limits', mutant: { limits: { perSweep: 100, sharePercent: 100, perDay: 10_000 } } },
  { breaks: 'I10', who: 'does not look at keep labels', mutant: { provider: unlabelled } },
  {
    breaks: 'leak',
    who: 'takes a lost answer for a refusal',
    from: 64,
    mutant: {
      provider: (provider) => ({
        ...provider,
        create: async (request, context) => {
          const refused = { kind: 'rejected', code: 'lost', message: 'no answer' } as const
          const answer = await provider.create(request, context).catch(() => refused)
          return answer.kind === 'uncertain' ? refused : answer
        },
      }),
    },
  },
  {
    breaks: 'I8',
    who: 'takes a plan that waits for one that was approved',
    from: 90,
    mutant: {
      store: between(async (query, go) => {
        if (!/^select .* from "plans" where .*"state" = /.test(query.sql)) return go(query)
        const waiting = await go({ ...query, parameters: query.parameters.map((one) => (one === 'approved' ? 'waiting' : one)) })
        const rows = (waiting.rows as { made_at: number; approved_at: number | null }[]).map((row) => ({
          ...row,
          approved_at: row.approved_at ?? row.made_at,
        }))
        return { ...waiting, rows: rows as never[] }
      }),
    },
  },
  { breaks: 'I8', who: 'begins by an approval what has changed since', mutant: { store: between(asItIsNow) } },
]

const bare = <R extends FoundResource | ListedResource>(one: R): R => ({ ...one, labels: {} })

function unlabelled(provider: Provider): Provider {
  return {
    ...provider,
    read: async (resource, config, context) => {
      const read = await provider.read(resource, config, context)
      return read.kind === 'present' ? { ...read, found: bare(read.found) } : read
    },
    async *list(locations, config, context) {
      for await (const item of provider.list!(locations, config, context))
        yield item.type === 'page' ? { ...item, resources: item.resources.map(bare) } : item
    },
  }
}

/** The plans that it reads name what is there now, and not what a person looked through. */
async function asItIsNow(query: CompiledQuery, go: (query: CompiledQuery) => Promise<Answer>): Promise<Answer> {
  const answer = await go(query)
  if (!/^select .* from "plans" where .*"state" = /.test(query.sql)) return answer
  const open = { ...query, sql: "select target_id, fingerprint from findings where code = 'orphan' and state = 'open'", parameters: [] }
  const found = (await go(open)).rows as { target_id: string; fingerprint: string }[]
  const now = new Map(found.map((row) => [row.target_id, row.fingerprint]))
  const rows = (answer.rows as { entries: string }[]).map((row) => {
    const entries = JSON.parse(row.entries) as { target: string; fingerprint: string }[]
    return { ...row, entries: JSON.stringify(entries.map((one) => ({ ...one, fingerprint: now.get(one.target) ?? one.fingerprint }))) }
  })
  return { ...answer, rows: rows as never[] }
}

function trusting(provider: Provider): Provider {
  return {
    ...provider,
    find: async (ref, config, context) => {
      const found = await provider.find(ref, config, context)
      return found.kind === 'complete' ? { ...found, found: found.found.map(taggedIsMade) } : found
    },
    read: async (resource, config, context) => {
      const read = await provider.read(resource, config, context)
      return read.kind === 'present' ? { ...read, found: taggedIsMade(read.found) } : read
    },
    async *list(locations, config, context) {
      for await (const item of provider.list!(locations, config, context))
        yield item.type === 'page' ? { ...item, resources: item.resources.map(taggedIsMade) } : item
    },
  }
}
