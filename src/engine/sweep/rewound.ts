/** A listing shows what this ledger has forgotten: it may be a copied or restored one, so nothing is removed in that account until a person decides (decisions 6). */
import { counted } from '../../lib/counted.ts'
import type { Rewind } from '../../model/own.ts'
import { appendEvents } from '../../store/events.ts'
import { addStop, everywhere, listStops } from '../../store/stops.ts'
import type { Tx } from '../../store/store.ts'
import { event, reportFinding } from '../record.ts'
import type { Inspected } from './run.ts'

/** Enough for a person to find them. */
const mostNamed = 20

const whyOf = (rewinds: readonly Rewind[]): string => {
  const unknown = rewinds.filter((one) => one.reason === 'contradiction.unknown-ref-of-ours').length
  const newer = rewinds.length - unknown
  return [
    ...(unknown === 0 ? [] : [`${counted(unknown, 'resource')} of ours with a ref that no project here knows`]),
    ...(newer === 0 ? [] : [`${counted(newer, 'resource')} of ours made after the newest start that this database knows of`]),
  ].join(', ')
}

/** Written with the findings of the sweep, before anything is planned. */
export const noteRewound = async (tx: Tx, { judged, scope }: Inspected): Promise<void> => {
  const rewinds = judged.flatMap((one) => (one.rewind === null ? [] : [one.rewind]))
  if (rewinds.length === 0) return
  const epochs = rewinds.flatMap((one) => (one.epoch === null ? [] : [one.epoch]))
  const epoch = epochs.length === 0 ? null : Math.max(...epochs)
  const why = `a listing shows ${whyOf(rewinds)}`
  const evidence = { refs: [...new Set(rewinds.map((one) => one.ref))].toSorted().slice(0, mostNamed), epoch }
  const target = { type: 'scope', id: scope, name: scope }
  if (await addStop(tx, { scope, code: 'rewound', why, evidence: JSON.stringify(evidence), epoch }))
    await appendEvents(tx, [event(tx, 'installation.stopped', { scope, why }, { project: null, targets: [target] })])
  await reportFinding(tx, {
    code: 'rewound',
    project: null,
    scope,
    target,
    message: `Removals in ${scope} are stopped: ${why}. If this is the database that goes on, and no coordinator runs on the other one any more, "leasehold installation adopt"; if another one does, "leasehold installation fork"`,
    evidence,
  })
}

/** Would removals be ordered in vain? */
export const isStopped = async (tx: Tx, scope: string): Promise<boolean> =>
  (await listStops(tx)).some((one) => one.scope === everywhere || one.scope === scope)
