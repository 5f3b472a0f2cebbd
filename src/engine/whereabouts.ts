/**
 * Does this database still live where it lived (decisions 6)? Asked at each start, before anything is taken back, and every 10 s while it runs. Found elsewhere, all
 * removals stop until a person runs `leasehold installation adopt` or `fork`; everything else goes on.
 */
import { errorText } from '../lib/redact.ts'
import { comparePlaces, describePlace, remember, type Place } from '../model/place.ts'
import { appendEvents } from '../store/events.ts'
import { lockInstallation, updateInstallation, type InstallationRow } from '../store/installation.ts'
import { readMark, writeMark, type Mark } from '../store/mark.ts'
import { readPlace } from '../store/place.ts'
import { addStop, everywhere, listStops } from '../store/stops.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Log } from './context.ts'
import { event, reportFinding } from './record.ts'

const lookEveryMs = 10_000

export interface Whereabouts {
  /** Counts the epoch up and looks; then looks again and again, if `watch`. */
  start(): Promise<void>
  look(): Promise<void>
  stop(): Promise<void>
  /** Resolves once another installation's id stands in the database: this process has to begin anew. */
  readonly forked: Promise<void>
}

export const installationTarget = (id: string) => ({ type: 'installation', id, name: id })

/** Told once; stands until a person decides. */
const stopEverything = async (tx: Tx, row: InstallationRow, why: string, found: Place): Promise<boolean> => {
  const evidence = { place: JSON.parse(row.place ?? 'null') as Place | null, found }
  if (!(await addStop(tx, { scope: everywhere, code: 'elsewhere', why, evidence: JSON.stringify(evidence), epoch: null }))) return false
  const target = installationTarget(row.installation_id)
  const message = `All removals are stopped: ${why}. Nothing else is. If this is the database that goes on, and no coordinator runs on the other one any more, "leasehold installation adopt"; if the other one does, "leasehold installation fork"`
  await appendEvents(tx, [event(tx, 'installation.stopped', { scope: everywhere, why }, { project: null, targets: [target] })])
  await reportFinding(tx, { code: 'elsewhere', project: null, scope: null, target, message, evidence })
  return true
}

/** What stands beside the file is newer than the file, or another database's. */
const judgeMark = (row: InstallationRow, mark: Mark | null): string | null => {
  // A database that was never started before has no past to be behind of: what lies there is another's, of long ago.
  if (mark === null || row.place === null) return null
  const former = JSON.parse(row.former) as string[]
  if (mark.installation !== row.installation_id && !former.includes(mark.installation))
    return 'another database was used last under the name of its file'
  return mark.mark > row.mark ? 'its file holds an older state than it held when it was used last: a backup was written over it' : null
}

export const createWhereabouts = (store: Store, installation: string, log: Log, watch: boolean): Whereabouts => {
  const forked = Promise.withResolvers<void>()
  let timer: NodeJS.Timeout | undefined
  let looking: Promise<void> | undefined

  const lookOnce = async (begin: boolean): Promise<void> => {
    const { place, beside } = await store.read(async (session) => ({ place: await readPlace(session), beside: await readMark(session) }))
    const { mark, told } = await store.write(async (tx) => {
      const row = await lockInstallation(tx)
      if (row.installation_id !== installation) {
        forked.resolve()
        return { mark: null, told: null }
      }
      const then = row.place === null ? null : (JSON.parse(row.place) as Place)
      const verdict = then === null ? { kind: 'same' as const } : comparePlaces(then, place)
      const why = verdict.kind === 'elsewhere' ? verdict.why : judgeMark(row, begin ? beside : null)
      const fresh = why !== null && (await stopEverything(tx, row, why, place))
      const standing = (await listStops(tx)).some((one) => one.code === 'elsewhere')
      const values = { mark: row.mark + 1, ...(begin ? { epoch: row.epoch + 1 } : {}) }
      // What may change where it is, such as the number of a device, is kept up to date; another place only by a person.
      await updateInstallation(tx, standing ? values : { ...values, place: JSON.stringify(remember(then, place)) })
      return { mark: { installation: row.installation_id, mark: values.mark }, told: fresh || begin ? why : null }
    })
    if (told !== null)
      log.error({ why: told, place: describePlace(place) }, 'all removals are stopped: this database was started elsewhere')
    if (mark === null) return
    try {
      await store.read((session) => writeMark(session, mark))
    } catch (error) {
      // A full disk: the older mark guards less, and stops nothing.
      log.warn({ error: errorText(error) }, 'the mark beside the database could not be written')
    }
  }
  const look = (begin = false): Promise<void> => {
    looking ??= lookOnce(begin).finally(() => {
      looking = undefined
    })
    return looking
  }

  return {
    forked: forked.promise,
    async start() {
      await look(true)
      if (watch)
        timer = setInterval(
          () =>
            void look().catch((error: unknown) =>
              log.error({ error: errorText(error) }, 'where the database lives could not be looked at'),
            ),
          lookEveryMs,
        )
    },
    look: () => look(),
    async stop() {
      clearInterval(timer)
      await looking?.catch(() => {})
      // What was written since the last look is newer than the mark says.
      await look().catch(() => {})
    },
  }
}
