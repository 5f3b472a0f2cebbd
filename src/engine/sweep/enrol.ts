/** Backends are enrolled for sweeps by a periodic task rather than at their creation, so that those of older replicas are found too (orphans R28-R33). */
import type { EngineContext } from '../context.ts'
import { errorText } from '../../lib/redact.ts'
import { enrol } from '../../store/cleanups.ts'

const everyMs = 60_000
const batch = 100

/** Of projects that have issued a ref, on providers that can list and are not `off`. @returns how many are new */
export const enrolMissing = async (context: EngineContext): Promise<number> => {
  const providers = [...context.providers.values()]
    .filter((provider) => provider.list !== undefined && context.sweepSettings(provider.name).mode.value !== 'off')
    .map((provider) => provider.name)
  if (providers.length === 0) return 0
  const missing = await context.store.read(({ db }) =>
    db
      .selectFrom('backends')
      .select(['backends.project', 'backends.name'])
      .where('backends.provider', 'in', providers)
      .where((where) =>
        where.not(
          where.exists(
            where
              .selectFrom('cleanups')
              .select('cleanups.id')
              .whereRef('cleanups.project', '=', 'backends.project')
              .whereRef('cleanups.backend', '=', 'backends.name'),
          ),
        ),
      )
      .where((where) => where.exists(where.selectFrom('ledger').select('ledger.ref').whereRef('ledger.project', '=', 'backends.project')))
      .limit(batch)
      .execute(),
  )
  if (missing.length === 0) return 0
  return context.store.write(async (tx) => {
    let fresh = 0
    for (const row of missing) if (await enrol(tx, row.project, row.name, tx.now)) fresh++
    return fresh
  })
}

export interface Enrolment {
  start(): void
  stop(): void
}

export const createEnrolment = (context: EngineContext): Enrolment => {
  let timer: NodeJS.Timeout | undefined
  const run = (): void =>
    void enrolMissing(context).then(
      (fresh) => fresh > 0 && context.signals.wake('sweep'),
      (error: unknown) => context.log.error({ error: errorText(error) }, 'backends could not be enrolled for sweeps'),
    )
  return {
    start() {
      run()
      timer = setInterval(run, everyMs)
    },
    stop: () => clearInterval(timer),
  }
}
