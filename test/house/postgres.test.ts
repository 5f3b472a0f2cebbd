import { expect, inject, it } from 'vitest'
import pg from 'pg'
import { postgresPrograms, startPostgres } from '../support/services/postgres.ts'
import { serviceOr } from '../support/services/skip.ts'

const ask = async (url: string, text: string): Promise<unknown> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<Record<string, unknown>>(text)
    return Object.values(rows[0] ?? {})[0]
  } finally {
    await client.end()
  }
}

serviceOr(
  'PostgreSQL',
  inject('postgres').url !== null,
  'apt-get install postgresql',
)('the PostgreSQL of this run', () => {
  const { url } = inject('postgres')

  it('answers, is 14 or newer, and its URL is in the environment too', async () => {
    expect(Number(await ask(url as string, 'show server_version_num'))).toBeGreaterThanOrEqual(140_000)
    expect(process.env.LEASEHOLD_TEST_POSTGRES_URL).toBe(url)
  })
})

serviceOr(
  'PostgreSQL',
  postgresPrograms() !== null,
  'apt-get install postgresql',
)('a PostgreSQL of our own', () => {
  it('keeps fsync when it is to be durable, and is gone after stop', async () => {
    const server = await startPostgres({ durable: true })
    try {
      expect(await ask(server.url, 'show fsync')).toBe('on')
    } finally {
      await server.stop()
    }
    await expect(ask(server.url, 'select 1')).rejects.toThrow('ECONNREFUSED')
  })
})
