/** A project or an account explained: what of ours is there, who stops removals in it, and what its sweeps said last. */
import { counted } from '../../lib/counted.ts'
import type { ExplanationNode, HeldBack } from '../../model/explain.ts'
import { circuitOpenUntil, circuitText } from '../../model/sweep.ts'
import type { ScopeId } from '../../model/ids.ts'
import type { BackendRow } from '../../store/backends.ts'
import { listCircuits } from '../../store/circuits.ts'
import { everyScope, listFreezes, standingHolds, type FreezeRow, type HoldRow } from '../../store/holds.ts'
import type { ProjectRow } from '../../store/projects.ts'
import { listSweeps } from '../../store/sweeps.ts'
import type { Session } from '../../store/store.ts'
import type { Actor } from '../actor.ts'
import type { EngineContext } from '../context.ts'
import { isoOrNull } from '../views.ts'
import { obstacles } from './conclude.ts'
import { freezeNode, holdNode } from './owner-tree.ts'
import { conclusionNode, node, type Told } from './told.ts'

interface Place {
  backends: readonly BackendRow[]
  holds: readonly HoldRow[]
  freezes: readonly FreezeRow[]
}

const backendNode = async (session: Session, context: EngineContext, row: BackendRow, now: number): Promise<ExplanationNode> => {
  const [newest] = await listSweeps(session, { project: row.project, backend: row.name, limit: 1 })
  const { mode } = context.sweepSettings(row.provider)
  const state = row.deleted_at === null ? '' : ', deleted and draining'
  return node(
    'backend',
    row.created_at,
    `backend ${row.project}/${row.name} of ${row.provider}${row.scope === null ? '' : ` in ${row.scope}`}${state}`,
    [
      node('mode', now, `the mode of its sweeps is ${mode.value} (${mode.origin})`),
      newest === undefined
        ? null
        : node(
            'sweep',
            newest.finished_at ?? newest.started_at,
            `its newest sweep, ${newest.id}, ended ${newest.outcome ?? 'without an outcome'}`,
          ),
    ],
  )
}

type Counted = { state: string; count: number | string | bigint }
const countsText = (rows: readonly Counted[], one: string, none: string): string =>
  rows.length === 0 ? none : `${one}: ${rows.map(({ state, count }) => `${Number(count)} ${state}`).join(', ')}`

/** Not counted: what has ended and is gone. */
const instancesIn = (session: Session, column: 'project' | 'scope', value: string, project: string | null): Promise<Counted[]> =>
  session.db
    .selectFrom('instances')
    .select(['state', (select) => select.fn.countAll().as('count')])
    .where(column, '=', value as never)
    .where('state', '<>', 'terminated')
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .groupBy('state')
    .orderBy('state')
    .execute()

const findingsIn = (session: Session, column: 'project' | 'scope', value: string, project: string | null): Promise<Counted[]> =>
  session.db
    .selectFrom('findings')
    .select(['code as state', (select) => select.fn.countAll().as('count')])
    .where(column, '=', value as never)
    .where('state', '=', 'open')
    .$if(project !== null, (query) => query.where('project', '=', project as string))
    .groupBy('code')
    .orderBy('code')
    .execute()

const commonNodes = async (
  session: Session,
  context: EngineContext,
  column: 'project' | 'scope',
  value: string,
  place: Place,
  project: string | null,
  now: number,
): Promise<ExplanationNode[]> => [
  ...(await Promise.all(place.backends.map((row) => backendNode(session, context, row, now)))),
  node('instance', now, countsText(await instancesIn(session, column, value, project), 'instances', 'no instance of it exists')),
  node('finding', now, countsText(await findingsIn(session, column, value, project), 'open findings', 'no finding is open')),
  ...place.holds.map(holdNode),
  ...place.freezes.map(freezeNode),
]

const stopsChange = (heldBack: readonly HeldBack[], otherwise: string): string =>
  heldBack.length === 0 ? otherwise : 'the end of what stops removals; each is then tried at once'

/** Is anything of it taken back, and what stops that? */
export const explainProject = async (session: Session, context: EngineContext, row: ProjectRow, now: number): Promise<Told> => {
  const backends = await session.db.selectFrom('backends').selectAll().where('project', '=', row.name).orderBy('name').execute()
  const scopes: readonly (string | null)[] = backends.map((one) => one.scope)
  const holds = (await standingHolds(session, now)).filter((hold) => hold.target_type === 'project' && hold.target_id === row.name)
  const freezes = (await listFreezes(session)).filter((freeze) => freeze.scope === everyScope || scopes.includes(freeze.scope))
  const heldBack = obstacles(holds, freezes)
  const draining = row.deleted_at !== null
  const text = draining
    ? `It is deleted${backends.length === 0 ? ', and nothing of it is left' : ': its backends are swept until nothing of it is left'}.`
    : `It has ${counted(backends.length, 'backend')}.`
  const verdict = draining ? 'ended' : heldBack.length > 0 ? 'held' : 'tracked'
  return {
    type: 'project',
    project: row.name,
    subject: `project ${row.name}`,
    verdict,
    reason: null,
    tree: conclusionNode({ verdict, reason: null, text }, row.deleted_at ?? row.created_at, [
      node('project', row.created_at, 'it was created'),
      ...(await commonNodes(session, context, 'project', row.name, { backends, holds, freezes }, null, now)),
    ]),
    heldBack,
    change: stopsChange(heldBack, draining ? 'nothing: a name is not given again' : 'its deletion: it then drains'),
  }
}

/** Undefined: nobody has ever used an account of that name. @param actor sees only the backends of its project */
export const explainScope = async (
  session: Session,
  context: EngineContext,
  actor: Actor,
  scope: string,
  now: number,
): Promise<Told | undefined> => {
  const backends = await session.db
    .selectFrom('backends')
    .selectAll()
    .where('scope', '=', scope as ScopeId)
    .$if(actor.project !== null, (query) => query.where('project', '=', actor.project as string))
    .orderBy('project')
    .orderBy('name')
    .execute()
  const used = await session.db
    .selectFrom('attempts')
    .select('opened_at')
    .where('scope', '=', scope as ScopeId)
    .$if(actor.project !== null, (query) => query.where('project', '=', actor.project as string))
    .orderBy('opened_at')
    .limit(1)
    .executeTakeFirst()
  const first = backends.length === 0 ? used?.opened_at : Math.min(...backends.map((row) => row.created_at))
  if (first === undefined) return undefined
  const holds = (await standingHolds(session, now)).filter((hold) => hold.target_type === 'scope' && hold.target_id === scope)
  const freezes = (await listFreezes(session)).filter((freeze) => freeze.scope === everyScope || freeze.scope === scope)
  const circuits = (await listCircuits(session)).filter((row) => row.scope === scope)
  const stops = obstacles(holds, freezes)
  const open = circuits.flatMap((row): HeldBack[] => {
    const until = circuitOpenUntil({ openUntil: row.open_until }, now)
    return until === null ? [] : [{ what: `its circuit (${row.provider}): no sweep of it begins by itself until then`, until }]
  })
  const verdict = stops.length > 0 ? 'held' : backends.length === 0 ? 'ended' : 'tracked'
  const text = backends.length === 0 ? 'No backend reaches it any more.' : `An account behind ${counted(backends.length, 'backend')}.`
  return {
    type: 'scope',
    project: actor.project,
    subject: `scope ${scope}`,
    verdict,
    reason: null,
    tree: conclusionNode({ verdict, reason: null, text }, first, [
      ...(await commonNodes(session, context, 'scope', scope, { backends, holds, freezes }, actor.project, now)),
      ...circuits.map((row) =>
        node('circuit', row.failed_at, circuitText({ ...row, openUntil: isoOrNull(circuitOpenUntil({ openUntil: row.open_until }, now)) })),
      ),
    ]),
    heldBack: [...stops, ...open],
    change: stopsChange(
      stops,
      backends.length === 0 ? 'a backend that reaches it' : 'a hold on it, or a freeze of it: leasehold freeze --scope',
    ),
  }
}
