/** Reads at the end what is on record: from the database itself, past every coordinator, and from what is left on this machine. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { openCloud } from '../../src/providers/simulated/cloud.ts'
import { defaultPath } from '../../src/providers/simulated/config.ts'
import { boxFolders, processesWith } from '../support/boxes.ts'
import type { AttemptFact, EventFact, History, InstanceFact, LeaseFact, RemovalFact } from './history.ts'

type Rows = Pick<History, 'leases' | 'instances' | 'attempts' | 'removals' | 'events'>

/** int8 as a number: every integer here is below 2^53. */
const connect = async (url: string): Promise<pg.Client> => {
  const types = { getTypeParser: (oid: number, format?: string) => (oid === 20 ? Number : pg.types.getTypeParser(oid, format as 'text')) }
  const client = new pg.Client({ connectionString: url, types: types as unknown as pg.CustomTypesConfig })
  await client.connect()
  return client
}

export const readRows = async (url: string): Promise<Rows> => {
  const client = await connect(url)
  const all = async <T extends pg.QueryResultRow>(text: string): Promise<T[]> => (await client.query<T>(text)).rows
  try {
    return {
      leases: await all<LeaseFact>(
        `select id, state, created_at as "createdAt", last_touched_at as "lastTouchedAt", ttl_seconds as "ttlSeconds", idle_seconds as "idleSeconds",
           ended_at as "endedAt", failure_code as "failureCode", instance_id as instance from leases order by id`,
      ),
      instances: await all<InstanceFact>('select id, state, attempt_id as attempt from instances order by id'),
      attempts: await all<AttemptFact>('select id, instance_id as instance, outcome from attempts order by id'),
      removals: await all<RemovalFact>(
        `select id, attempt_id as attempt, instance_id as instance, lease_id as lease, state, cause, opened_at as "openedAt" from removals order by id`,
      ),
      events: await all<EventFact>(
        `select e.id, e.seq, e.at, e.code, array(select t.id from event_targets t where t.event_id = e.id) as targets
           from events e order by e.seq nulls last, e.id`,
      ),
    }
  } finally {
    await client.end()
  }
}

/** How many rows still move: nothing ends before they stand still. */
export const countMoving = async (url: string): Promise<string | null> => {
  const client = await connect(url)
  try {
    const { rows } = await client.query<{ leases: number; instances: number; removals: number }>(
      `select (select count(*) from leases where state in ('provisioning', 'active')) as leases,
              (select count(*) from instances where state <> 'terminated') as instances,
              (select count(*) from removals where state <> 'gone') as removals`,
    )
    const [row] = rows
    if (row === undefined || row.leases + row.instances + row.removals === 0) return null
    return `${row.leases} leases live, ${row.instances} instances not terminated, ${row.removals} removals not gone`
  } finally {
    await client.end()
  }
}

/** Tokens of all attempts, to compare with those that a provider was ever asked with. */
const tokensOf = async (url: string): Promise<Set<string>> => {
  const client = await connect(url)
  try {
    return new Set((await client.query<{ token: string }>('select token from attempts')).rows.map((row) => row.token))
  } finally {
    await client.end()
  }
}

export const readLeft = async (url: string, data: string, installation: string): Promise<Pick<History, 'left' | 'strangers'>> => {
  const left = [
    ...boxFolders(data).map((name) => `folder ${name}`),
    ...processesWith('LEASEHOLD_INSTALLATION', installation).map((pid) => `process ${pid}`),
  ]
  const path = defaultPath(data)
  if (!existsSync(path)) return { left, strangers: [] }
  const cloud = openCloud(path)
  try {
    const tokens = await tokensOf(url)
    const asked = cloud.database.all<{ token: string }>('select token from tokens').map((row) => row.token)
    return {
      left: [...left, ...cloud.all().map((one) => `${one.kind} ${one.id} (${one.state}) in ${join(data, 'simulated.db')}`)],
      strangers: asked.filter((token) => !tokens.has(token)),
    }
  } finally {
    cloud.close()
  }
}
