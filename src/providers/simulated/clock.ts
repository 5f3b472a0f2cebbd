/**
 * The account's own time. It goes on with this machine's clock since its start, from what the wall clock said when the account was made: so all who share the
 * account agree on its time, also where the wall clock of one of them is wrong, as all clients of a real cloud do. It stands still while the machine sleeps.
 */
import { bootId } from '../../lib/host.ts'
import type { Database } from './database.ts'

interface Anchor {
  boot: string
  wall: number
  steady: number
}

/** ms since the machine started; the same in each of its processes. */
const steadyNow = (): number => Number(process.hrtime.bigint() / 1_000_000n)

/** @returns ms since the epoch, by the account */
export const accountClock = (database: Database): (() => number) => {
  const boot = bootId()
  // Processes of such a host can't know that they count from the same moment.
  if (boot === null) return Date.now
  const { wall, steady } = database.transaction(() => {
    const known = database.one<Anchor>('select * from clock')
    if (known?.boot === boot) return known
    const fresh: Anchor = { boot, wall: Date.now(), steady: steadyNow() }
    database.run('delete from clock')
    database.run('insert into clock (boot, wall, steady) values (?, ?, ?)', fresh.boot, fresh.wall, fresh.steady)
    return fresh
  })
  return () => wall + steadyNow() - steady
}
