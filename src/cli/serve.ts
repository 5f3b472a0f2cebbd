/** The coordinator: wires store, provider, engine and API, and takes them down again. Everything heavy is loaded here and nowhere else in the CLI. */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AddressInfo } from 'node:net'
import { createApi } from '../api/index.ts'
import { firstStart, needsAdminToken } from '../engine/admin/index.ts'
import { createEngine, type Engine } from '../engine/engine.ts'
import { installationOf } from '../engine/installation.ts'
import { secret } from '../lib/ids.ts'
import { tryFileLock } from '../store/claim-lock.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { createLog, type Logger } from '../telemetry/log.ts'
import { createMetrics } from '../telemetry/metrics.ts'
import { createProviders } from './serve-providers.ts'
import { packageVersion } from './support/version.ts'
import { CliError, exitCodes, messageOf } from './support/errors.ts'
import type { ServeOptions } from './support/serve-options.ts'
import type { SweepSettings } from '../model/sweep-settings.ts'

const stopGraceMs = 10_000
const dayMs = 86_400_000

/** One coordinator per SQLite folder: the kernel holds the lock, so it goes when its holder dies, however that dies. */
const lockFolder = async (data: string): Promise<() => void> => {
  const pidFile = join(data, 'serve.pid')
  const release = await tryFileLock(join(data, 'serve.lock'))
  if (release === null) {
    const pid = existsSync(pidFile) ? readFileSync(pidFile, 'utf8').trim() : 'unknown'
    throw new CliError(
      `another coordinator, pid ${pid}, runs on the data folder ${data}: stop it, or give this one its own folder with --data`,
      exitCodes.failure,
    )
  }
  writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 })
  return () => {
    rmSync(pidFile, { force: true })
    release()
  }
}

const openDatabase = async (settings: ServeOptions['settings'], data: string): Promise<Store> => {
  const { value: url, origin } = settings.databaseUrl
  try {
    return await openStore(url ?? join(data, 'leasehold.db'))
  } catch (error) {
    throw new CliError(
      `the database could not be opened (${url === null ? join(data, 'leasehold.db') : origin}): ${messageOf(error)}`,
      exitCodes.failure,
    )
  }
}

/** The secret stands in its file before the database knows it: a crash between the two loses nothing. */
const ensureAdminToken = async (engine: Engine, data: string): Promise<string | null> => {
  const file = join(data, 'admin.token')
  if (!(await needsAdminToken(engine.context))) {
    await firstStart(engine.context)
    return null
  }
  if (!existsSync(file)) {
    const fresh = `${file}.${process.pid}`
    writeFileSync(fresh, `${secret('lhx_')}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(fresh, file)
  }
  const { adminToken } = await firstStart(engine.context, readFileSync(file, 'utf8').trim())
  return adminToken === null ? null : file
}

/** Another replica on this folder may have written its own address since: that one stays. */
const withdrawUrl = (file: string, url: string): void => {
  try {
    if (readFileSync(file, 'utf8').trim() === url) rmSync(file, { force: true })
  } catch {
    // It is gone already.
  }
}

/** A database may name a provider that this program does not have: nothing of it is ever swept. */
const withoutProvider = (provider: string): SweepSettings => {
  const of = <T>(value: T) => ({ value, origin: `no provider "${provider}"` })
  return { mode: of('off'), intervalMs: of(900_000), graceMs: of(900_000), reportEveryMs: of(86_400_000) }
}

/** Runs until a signal asks it to stop; calls in flight are let finish and their results recorded. After a fork of its database it begins anew. */
export const serve = async (options: ServeOptions): Promise<void> => {
  const log = createLog(options.settings.logLevel.value)
  let port = options.settings.port.value
  for (;;) {
    const end = await serveOnce(options, port, log)
    if (end.kind === 'signal') return
    // Under the address that its clients know.
    port = end.port
    log.warn({}, 'the database was forked: the coordinator begins anew')
  }
}

type End = { kind: 'signal' } | { kind: 'forked'; port: number }

const serveOnce = async ({ settings, sweeps, rates }: ServeOptions, wantedPort: number, log: Logger): Promise<End> => {
  const data = settings.data.value
  mkdirSync(data, { recursive: true, mode: 0o700 })
  chmodSync(data, 0o700)
  const unlock = settings.databaseUrl.value === null ? await lockFolder(data) : () => {}
  const store = await openDatabase(settings, data)
  const providers = createProviders(data, (await installationOf(store)).installation_id)
  const metrics = createMetrics({ ofProcess: true })
  const engine = await createEngine({
    store,
    providers,
    log,
    meter: metrics,
    version: packageVersion(),
    eventsTtlMs: settings.eventsTtlSeconds.value * 1000,
    retain: {
      leasesMs: settings.retainLeasesDays.value * dayMs,
      findingsMs: settings.retainFindingsDays.value * dayMs,
      sweepsMs: settings.retainSweepsDays.value * dayMs,
    },
    limits: {
      perSweep: settings.limitPerSweep.value,
      sharePercent: settings.limitSharePercent.value,
      perDay: settings.limitPerDay.value,
    },
    caps: {
      leasesPerProject: settings.maxLeasesPerProject.value,
      leasesPerOwner: settings.maxLeasesPerOwner.value,
      createsPerProject: settings.maxCreatesPerProject.value,
      createsPerOwner: settings.maxCreatesPerOwner.value,
    },
    fourEyes: settings.fourEyes.value,
    callsPerSecond: (provider) => rates.get(provider)?.value ?? null,
    sweepSettings: (provider) => sweeps.get(provider) ?? withoutProvider(provider),
  })
  const tokenFile = await ensureAdminToken(engine, data)
  await engine.start()
  const api = await createApi({
    context: engine.context,
    engine,
    version: packageVersion(),
    log,
    metrics,
    dataFolder: data,
    host: settings.host.value,
  })
  try {
    await api.listen({ host: settings.host.value, port: wantedPort })
  } catch (error) {
    await engine.stop(0)
    await store.close()
    unlock()
    const inUse = (error as { code?: string }).code === 'EADDRINUSE'
    throw new CliError(
      inUse
        ? `port ${wantedPort} on ${settings.host.value} is in use (${settings.port.origin}): stop what uses it, or choose another with --port`
        : `could not listen on ${settings.host.value}:${wantedPort}: ${messageOf(error)}`,
      exitCodes.failure,
    )
  }
  const { port } = api.server.address() as AddressInfo
  const url = `http://${settings.host.value.includes(':') ? `[${settings.host.value}]` : settings.host.value}:${port}`
  // So that this user's commands find it also when the port came by a flag.
  writeFileSync(join(data, 'serve.url'), `${url}\n`, { mode: 0o600 })
  log.info(
    { url, database: store.description, data, installation: engine.context.installation.installation_id },
    `Leasehold ${packageVersion()} serves on ${url}`,
  )
  if (tokenFile !== null)
    log.info({}, `first start: the admin's token is in ${tokenFile}; the commands of this user on this machine find it by themselves`)
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const asked = Promise.withResolvers<NodeJS.Signals>()
  for (const name of names) process.once(name, asked.resolve)
  const signal = await Promise.race([asked.promise, engine.forked.then(() => null)])
  if (signal !== null) log.info({ signal }, 'stopping: calls in flight are let finish')
  await api.close()
  await engine.stop(stopGraceMs)
  await store.close()
  withdrawUrl(join(data, 'serve.url'), url)
  unlock()
  for (const name of names) process.removeListener(name, asked.resolve)
  return signal === null ? { kind: 'forked', port } : { kind: 'signal' }
}
