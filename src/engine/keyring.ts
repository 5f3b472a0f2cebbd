/**
 * The keys of the keyed tag in use. A key's secret is read here, fed to the HMAC, and goes nowhere else. The newest key makes new tags and all of them verify, so what
 * was read once never goes stale; only a key that is not known yet is looked for again.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { letterFirst, secret } from '../lib/ids.ts'
import { formatMac, macText, parseMac, whyNotOurs, type MacClaim, type MacVerdict } from '../model/mac.ts'
import type { FoundResource, OwnershipTags } from '../providers/contract.ts'
import type { KeyRow } from '../store/keys.ts'
import { listKeys } from '../store/keys.ts'
import type { Session, Store } from '../store/store.ts'

/** A new key, not stored yet. */
export const freshKey = (): Pick<KeyRow, 'id' | 'secret'> => ({ id: letterFirst(6), secret: secret('') })

const digits = (key: string, claim: MacClaim): string => createHmac('sha256', key).update(macText(claim)).digest('hex').slice(0, 40)

export const makeMac = (key: Pick<KeyRow, 'id' | 'secret'>, claim: MacClaim): string =>
  formatMac({ keyId: key.id, epoch: claim.epoch, digits: digits(key.secret, claim) })

export type JudgeMac = (tags: OwnershipTags, scope: string) => MacVerdict

const judgeBy =
  (secrets: ReadonlyMap<string, string>, installation: string): JudgeMac =>
  (tags, scope) => {
    if (tags.mac === null) return { kind: 'none' }
    const value = parseMac(tags.mac)
    if (value === null || tags.ref === null || tags.attempt === null) return { kind: 'wrong' }
    const key = secrets.get(value.keyId)
    if (key === undefined) return { kind: 'unknown-key', keyId: value.keyId }
    const claim = { installation, scope, ref: tags.ref, attempt: tags.attempt, epoch: value.epoch }
    // Both are 40 hex digits: the shape was checked.
    return timingSafeEqual(Buffer.from(value.digits), Buffer.from(digits(key, claim)))
      ? { kind: 'valid', epoch: value.epoch }
      : { kind: 'wrong' }
  }

/** All keys as they are now, as a judge of keyed tags; and since when there are any, in ms. */
export const readJudge = async (session: Session, installation: string): Promise<{ judgeMac: JudgeMac; since: number | null }> => {
  const keys = await listKeys(session)
  return { judgeMac: judgeBy(new Map(keys.map((key) => [key.id, key.secret])), installation), since: keys[0]?.created_at ?? null }
}

export interface Keyring {
  /**
   * Why what a fresh read shows is not to be taken for what the attempt made; null: its keyed tag does not speak against it. What is on its way out may have no
   * tags left to read.
   * @param macKey of the attempt
   */
  whyNotOurs(found: Pick<FoundResource, 'tags' | 'existence' | 'resource'>, macKey: string | null): Promise<string | null>
}

export const createKeyring = (store: Store, installation: string): Keyring => {
  let judge: JudgeMac | undefined
  const load = async (): Promise<JudgeMac> => (judge = (await store.read((session) => readJudge(session, installation))).judgeMac)
  return {
    async whyNotOurs({ tags, existence, resource }, macKey) {
      if (tags.mac === null) return whyNotOurs({ kind: 'none' }, macKey !== null && existence === 'exists')
      const first = (judge ?? (await load()))(tags, resource.scope)
      // Another replica may have made it since.
      return whyNotOurs(first.kind === 'unknown-key' ? (await load())(tags, resource.scope) : first, macKey !== null)
    },
  }
}
