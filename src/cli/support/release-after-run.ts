import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseView } from '../../model/wire.ts'
import type { ClaimKeeper } from './claim-keeper.ts'
import type { Cli } from './cli.ts'
import { messageOf } from './errors.ts'
import { ApiError, NoAnswer } from './http.ts'
import { inAMoment, onceMore, type Interrupts } from './interrupts.ts'
import { leasePath, waitForRemoval } from './leases.ts'
import type { Session } from './session.ts'

/** How long `run` and `stop` wait for proof of a removal. */
export const proofMs = 30_000
/** How long a release is sent again while nobody answers; the lease ends by its idle clock then. */
const resendMs = 20_000

export interface ReleaseAfterRun {
  cli: Cli
  session: Session
  keeper: ClaimKeeper
  lease: LeaseView
  interrupts: Interrupts
  wait: boolean
  quiet: boolean
}

/**
 * The first signal of a run never ends the wait for the proof: a terminal's Ctrl-C ends the command too, and may be told to us only
 * after that. The second does.
 */
const secondSignal = (interrupts: Interrupts, say: (text: string) => void): AbortSignal => {
  const controller = new AbortController()
  interrupts.handle((signal) => {
    if (interrupts.total() > 1) return controller.abort()
    const quiet = inAMoment(() => say(`waiting for the proof that the box is gone; ${onceMore(signal)} stops waiting`))
    controller.signal.addEventListener('abort', quiet)
  })
  return controller.signal
}

/** Releases without a word on deletion (leases R30), then waits for the proof. Never throws: the command's status stands. */
export const releaseAfterRun = async ({ cli, session, keeper, lease, interrupts, wait, quiet }: ReleaseAfterRun): Promise<void> => {
  let over = false
  const signal = secondSignal(interrupts, (text) => {
    if (!quiet && !over) cli.say(text)
  })
  try {
    const released = await release(session, lease)
    if (!wait) {
      await keeper.settle(released)
      if (!quiet) cli.say(`lease ${lease.id} is released; its removal goes on`)
      return
    }
    const { lease: latest, final, held, over } = await waitForRemoval(session.client, released, proofMs, signal)
    if (final) {
      await keeper.settle(latest)
      return
    }
    if (held) {
      cli.warn(
        `lease ${lease.id} is released, its box is held back by ${latest.cleanup.heldBy ?? 'someone'}: it is removed once that is lifted ("leasehold hold list", "leasehold freeze --list", "leasehold installation")`,
      )
      return
    }
    if (over) {
      cli.warn(
        `lease ${lease.id} is released, and its removal is not tried any more${latest.cleanup.error === null ? '' : `: ${latest.cleanup.error}`}. Look with "leasehold removal show ${latest.cleanup.removalID ?? ''}"`,
      )
      return
    }
    const why = latest.cleanup.error ?? (signal.aborted ? 'the wait was interrupted' : `no proof within ${proofMs / 1000} s`)
    cli.warn(
      `lease ${lease.id} is released, its removal is not proved: ${why}. It goes on by itself; look with "leasehold status ${lease.id}"`,
    )
  } catch (error) {
    cli.warn(
      `lease ${lease.id} could not be released: ${messageOf(error)}. It ends at ${lease.expiresAt} at the latest; end it with "leasehold stop ${lease.id}"`,
    )
  } finally {
    over = true
  }
}

const release = async ({ client }: Session, lease: LeaseView): Promise<LeaseView> => {
  const deadline = performance.now() + resendMs
  for (let pauseMs = 200; ; pauseMs = Math.min(pauseMs * 2, 2000)) {
    try {
      const { body } = await client.call<{ lease: LeaseView }>('POST', `${leasePath(lease.id)}/release`, { body: {}, deadlineMs: resendMs })
      return body.lease
    } catch (error) {
      const mayWork = error instanceof NoAnswer || (error instanceof ApiError && error.status >= 500)
      if (!mayWork || performance.now() > deadline) throw error
      await sleep(pauseMs)
    }
  }
}
