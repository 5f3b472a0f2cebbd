import { letterFirst, secret } from '../lib/ids.ts'
import { freshKey } from './keyring.ts'
import type { InstallationId } from '../model/ids.ts'
import { ensureInstallation, lockInstallation, type InstallationRow } from '../store/installation.ts'
import { addKey, currentKey } from '../store/keys.ts'
import type { Store } from '../store/store.ts'

/** Who this database belongs to; the first one to ask decides that. Known before the engine, for providers that tell theirs from others'. */
export const installationOf = (store: Store): Promise<InstallationRow> => {
  const fresh = { installation_id: letterFirst(8) as InstallationId, secret: secret('') }
  return store.write(async (tx) => {
    await ensureInstallation(tx, fresh)
    // Two that start at once make one key.
    const row = await lockInstallation(tx)
    if (!(await currentKey(tx))) await addKey(tx, freshKey())
    return row
  })
}
