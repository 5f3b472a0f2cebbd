import { letterFirst, secret } from '../lib/ids.ts'
import type { InstallationId } from '../model/ids.ts'
import { ensureInstallation, type InstallationRow } from '../store/installation.ts'
import type { Store } from '../store/store.ts'

/** Who this database belongs to; the first one to ask decides that. Known before the engine, for providers that tell theirs from others'. */
export const installationOf = (store: Store): Promise<InstallationRow> => {
  const fresh = { installation_id: letterFirst(8) as InstallationId, secret: secret('') }
  return store.write((tx) => ensureInstallation(tx, fresh))
}
