/** A follower of the feed, as `leasehold events --follow` is one: page after page, from whichever replica answers. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { EventView } from '../../src/model/wire.ts'
import type { Caller } from './client.ts'
import type { History } from './history.ts'

/** @param done nothing comes any more: it ends with the first empty page after that */
export const follow = async (caller: Caller, followed: History['followed'], done: () => boolean): Promise<void> => {
  let after = 0
  for (;;) {
    const last = done()
    const page = await caller.call<{ events: EventView[]; next: number }>('GET', `/v1/events?after=${after}&limit=500`)
    if (page === null) return
    if (page.status !== 200) throw new Error(`the feed answered ${page.status} ${JSON.stringify(page.body)}`)
    followed.push(...page.body.events.map(({ seq, id }) => ({ seq, id })))
    after = page.body.next
    if (page.body.events.length === 0) {
      if (last) return
      await sleep(300)
    }
  }
}
