/** Denied kinds are findings of their own: reported once, and over when they can be listed again (orphans R102). */
import type { Session, Tx } from '../../store/store.ts'
import { reportFinding, resolveAbout } from '../record.ts'
import { unswept } from '../../store/findings.ts'
import type { SweepWork } from './load.ts'
import type { Inspected } from './run.ts'

interface DeniedKind {
  /** `provider/location/kind`. */
  key: string
  location: string
  kind: string
  permission: string
}

const deniedKinds = (work: SweepWork, inspected: Inspected): DeniedKind[] =>
  inspected.inventory.cells.flatMap(({ location, kind, state }) =>
    state.kind === 'denied' ? [{ key: `${work.backend.provider}/${location}/${kind}`, location, kind, permission: state.permission }] : [],
  )

const knownKeys = async (session: Session, work: SweepWork): Promise<Set<string>> => {
  const open = await session.db
    .selectFrom('findings')
    .select('target_id')
    .where('code', '=', 'denied-kind')
    .where('state', '=', 'open')
    .where('project', '=', work.backend.project)
    .where('backend', '=', work.backend.name)
    .execute()
  return new Set(open.map((row) => row.target_id))
}

/** How many no earlier sweep has reported. */
export const countNewlyDenied = async (session: Session, work: SweepWork, inspected: Inspected): Promise<number> => {
  const known = await knownKeys(session, work)
  return deniedKinds(work, inspected).filter(({ key }) => !known.has(key)).length
}

/** @returns how many are new */
export const noteDenied = async (tx: Tx, work: SweepWork, inspected: Inspected): Promise<number> => {
  const { name, project } = work.backend
  const known = await knownKeys(tx, work)
  const denied = deniedKinds(work, inspected)
  for (const { key, location, kind, permission } of denied)
    await reportFinding(tx, {
      code: 'denied-kind',
      project,
      scope: inspected.scope,
      target: { type: 'kind', id: key, name: key },
      message: `${kind} in ${location} may not be listed: ${permission}`,
      evidence: { permission },
      sweep: { ...unswept, backend: name },
    })
  const now = new Set(denied.map(({ key }) => key))
  await resolveAbout(
    tx,
    'kind',
    [...known].filter((key) => !now.has(key)),
    'denied-kind',
  )
  return [...now].filter((key) => !known.has(key)).length
}
