/**
 * The keyed tag `leasehold_mac`: what only the holder of this installation's database can have written. It covers scope, ref, attempt, installation and
 * epoch, so it proves no other resource than those of one attempt; a copy of all tags carries it too, and so it is no fact fixed at creation.
 *
 * The value is `1-<key id>-<epoch>-<40 hex digits>`, at most 63 characters of a-z, 0-9 and -, which every provider takes as a label. The digits are the first
 * 160 bits of an HMAC-SHA-256: RFC 2104 asks for no fewer than half of its 256.
 */
export interface MacClaim {
  installation: string
  scope: string
  ref: string
  /** The attempt's token. */
  attempt: string
  epoch: number
}

export interface MacValue {
  keyId: string
  epoch: number
  digits: string
}

/** What a resource's keyed tag is found to be. */
export type MacVerdict =
  /** There is none that can be read. */
  | { kind: 'none' }
  | { kind: 'valid'; epoch: number }
  /** Made by a key that is not in this database: nobody here can tell. */
  | { kind: 'unknown-key'; keyId: string }
  /** No value that we write, or not what our key makes of these tags. */
  | { kind: 'wrong' }

const shape = /^1-([a-z][a-z0-9]{5})-(0|[1-9]\d{0,8})-([0-9a-f]{40})$/

export const formatMac = ({ keyId, epoch, digits }: MacValue): string => `1-${keyId}-${epoch}-${digits}`

/** Null: it is none of ours by its shape. */
export const parseMac = (text: string): MacValue | null => {
  const [, keyId, epoch, digits] = shape.exec(text) ?? []
  return keyId === undefined || epoch === undefined || digits === undefined ? null : { keyId, epoch: Number(epoch), digits }
}

/** What is authenticated; a list in JSON, so that no two claims give the same text. */
export const macText = ({ installation, scope, ref, attempt, epoch }: MacClaim): string =>
  JSON.stringify(['leasehold_mac', 1, installation, scope, ref, attempt, epoch])

/** The epoch that a value names, unproved; null: it names none. The cheap question for each resource of a large listing. */
export const claimedEpoch = (text: string | null): number | null => (text === null ? null : (parseMac(text)?.epoch ?? null))

/** Why a resource with this keyed tag is not to be taken for what an attempt made; null: nothing speaks against it. `written`: the attempt wrote one. */
export const whyNotOurs = (verdict: MacVerdict, written: boolean): string | null => {
  switch (verdict.kind) {
    case 'valid':
      return null
    case 'none':
      return written ? 'its leasehold_mac tag, which was written at its creation, is gone' : null
    case 'unknown-key':
      return `its leasehold_mac tag was made by key ${verdict.keyId}, which this database does not have`
    case 'wrong':
      return 'its leasehold_mac tag is not what the key of this installation makes of its other tags'
  }
}
