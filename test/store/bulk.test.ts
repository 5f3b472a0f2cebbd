import { expect, it } from 'vitest'
import { updateUnchanged } from '../../src/store/bulk.ts'
import { eachStore } from '../support/stores.ts'

eachStore('many rows at once', (open) => {
  it('writes only those that are still as they were seen, and says which', async () => {
    const store = await open()
    await store.write((tx) =>
      tx.db
        .insertInto('create_requests')
        .values(
          ['a', 'b', 'c'].map((key) => ({
            project: 'default',
            request_key: key,
            lease_id: `lh_${key}`,
            state: 'created' as const,
            request_hash: null,
            created_at: 1,
          })),
        )
        .execute(),
    )
    const written = await store.write((tx) =>
      updateUnchanged(
        tx,
        'create_requests',
        [
          ['request_key', 'text'],
          ['created_at', 'bigint'],
        ],
        [
          ['lease_id', 'text'],
          ['created_at', 'bigint'],
        ],
        [
          ['a', 5, 'lh_a', 1],
          ['b', 5, 'lh_b', 2],
          ['c', 5, 'lh_other', 1],
          ['d', 5, 'lh_d', 1],
        ],
      ),
    )
    expect(written).toEqual(new Set(['a']))
    const rows = await store.read(({ db }) =>
      db.selectFrom('create_requests').select(['request_key', 'created_at']).orderBy('request_key').execute(),
    )
    expect(rows.map((row) => [row.request_key, row.created_at])).toEqual([
      ['a', 5],
      ['b', 1],
      ['c', 1],
    ])
  })
})
