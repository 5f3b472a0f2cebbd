/** What this installation knows of itself, read for a judgement of what a listing shows. */
import type { Own } from '../model/own.ts'
import { readInstallation } from '../store/installation.ts'
import type { Session } from '../store/store.ts'
import { readJudge } from './keyring.ts'

/** Read after a listing it holds every epoch that the listing can show of ours. */
export const ownOf = async (session: Session, installation: string, writesMac: boolean): Promise<Own> => {
  const row = await readInstallation(session)
  const { judgeMac, since } = await readJudge(session, installation)
  return {
    former: JSON.parse(row?.former ?? '[]') as string[],
    heldSince: row?.held_since ?? 0,
    epoch: row?.epoch ?? 0,
    adoptedAt: row?.adopted_at ?? null,
    macSince: writesMac ? since : null,
    judgeMac,
  }
}
