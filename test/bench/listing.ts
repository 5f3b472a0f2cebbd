/** What a provider would answer to a listing of seeded leases, read from their attempts: one page a call, in the order in which the boxes were made. */
import type { Engine } from '../../src/engine/engine.ts'
import type { ListedResource, ListingItem } from '../../src/providers/contract.ts'
import { testScope } from '../support/scripted-provider.ts'

const page = 1000

/** A provider knows nothing of the order of our refs, so each page asks for refs from all over the ledger. */
export async function* seededPages({ context }: Engine): AsyncGenerator<ListingItem> {
  const installation = context.installation.installation_id
  for (let after = ''; ;) {
    const rows = await context.store.read(({ db }) =>
      db
        .selectFrom('attempts')
        .select(['id', 'ref', 'token', 'native_id', 'immutable_id', 'location'])
        .where('id', '>', after as never)
        .orderBy('id')
        .limit(page)
        .execute(),
    )
    const resources = rows.map((row): ListedResource => ({
      resource: {
        scope: testScope,
        location: row.location,
        kind: 'box',
        nativeId: row.native_id ?? '',
        immutableId: row.immutable_id ?? '',
        facts: {},
      },
      tags: { ref: row.ref, installation, attempt: row.token, mac: null },
      fixedAttemptToken: row.token,
      providerState: 'running',
      existence: 'exists',
      name: row.ref,
      createdAt: null,
      labels: {},
      attachedTo: [],
      reportOnly: null,
    }))
    if (resources.length > 0) yield { type: 'page', location: 'local', kind: 'box', resources }
    const last = rows.at(-1)
    if (!last || rows.length < page) break
    after = last.id
  }
  yield { type: 'coverage', coverage: { location: 'local', kind: 'box', state: { kind: 'complete' }, pages: 1 } }
}
