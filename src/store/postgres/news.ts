/** LISTEN and NOTIFY: one connection of its own hears what other replicas tell. Whoever misses some finds it by polling. */
import pg from 'pg'
import type { News } from '../store.ts'

const channel = 'leasehold'
const firstRetryMs = 250
const longestRetryMs = 30_000

/** @param publish runs one statement on any connection */
export const postgresNews = (url: string, publish: (text: string, values: unknown[]) => Promise<unknown>): News => ({
  publish: async (text) => void (await publish('select pg_notify($1, $2)', [channel, text])),
  async subscribe(heard, restored) {
    let ended = false
    let client: pg.Client | undefined
    let timer: NodeJS.Timeout | undefined
    let failures = 0

    const connect = async (): Promise<void> => {
      const fresh = new pg.Client({
        connectionString: url,
        connectionTimeoutMillis: 10_000,
        application_name: 'leasehold news',
        keepAlive: true,
      })
      let lost = false
      const lose = (): void => {
        if (lost) return
        lost = true
        void fresh.end().catch(() => {})
        if (ended) return
        timer = setTimeout(() => void retry(), Math.min(longestRetryMs, firstRetryMs * 2 ** failures++))
      }
      fresh.on('error', lose)
      fresh.on('end', lose)
      fresh.on('notification', ({ payload }) => heard(payload ?? ''))
      client = fresh
      try {
        await fresh.connect()
        await fresh.query(`listen ${channel}`)
        failures = 0
      } catch {
        lose()
      }
    }
    const retry = async (): Promise<void> => {
      await connect()
      if (failures === 0 && !ended) restored()
    }
    await connect()
    return async () => {
      ended = true
      clearTimeout(timer)
      await client?.end().catch(() => {})
    }
  },
})
