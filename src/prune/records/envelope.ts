/**
 * From a record to the bytes of a config and back. The signature covers the type, the key's id and the whole body, as canonical JSON; revisions are
 * packed, because their manifests are long.
 */
import { createHash } from 'node:crypto'
import { gunzipSync, gzipSync } from 'node:zlib'
import { type Bodies, envelopeText, fieldsOf, mostDataBytes, mostPlainBytes, parseBody, recordVersion } from '../../model/prune/records.ts'
import { type Keys, type KnownKey, type Signer, isSigned } from './keys.ts'
import { PoisonError } from './poison.ts'

export interface Encoded {
  /** As the Engine takes it. */
  base64: string
  /** SHA-256 of the bytes, in hex. */
  hash: string
}

export const hashOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

export class RecordTooLargeError extends Error {}

/** @throws RecordTooLargeError for more than an Engine surely takes (docker facts 3.3) */
export const encode = <T extends keyof Bodies>(type: T, body: Bodies[T], signer: Signer): Encoded => {
  const signature = signer.sign(envelopeText(type, body, signer.keyId))
  const plain = Buffer.from(JSON.stringify({ version: recordVersion, type, key: signer.keyId, signature, body }))
  if (plain.byteLength > mostPlainBytes)
    throw new RecordTooLargeError(`the record has ${plain.byteLength} bytes; at most ${mostPlainBytes} are written`)
  const bytes = type === 'revision' ? gzipSync(plain, { level: 9 }) : plain
  if (bytes.byteLength > mostDataBytes)
    throw new RecordTooLargeError(`the record would have ${bytes.byteLength} bytes, and a Swarm surely takes ${mostDataBytes}`)
  return { base64: bytes.toString('base64'), hash: hashOf(bytes) }
}

const unpack = (type: keyof Bodies, bytes: Buffer): Buffer => {
  if (type !== 'revision') return bytes
  try {
    return gunzipSync(bytes, { maxOutputLength: mostPlainBytes })
  } catch {
    throw new PoisonError('bad-gzip', 'its content can not be unpacked')
  }
}

export interface Opened<T extends keyof Bodies> {
  body: Bodies[T]
  keyId: string
  signature: string
  hash: string
}

/** The shape alone, without a word on who signed it. @throws PoisonError */
export const open = <T extends keyof Bodies>(type: T, base64: string | undefined): Opened<T> => {
  const bytes = Buffer.from(base64 ?? '', 'base64')
  const plain = unpack(type, bytes)
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(plain))
  } catch {
    throw new PoisonError('bad-json', 'its content is no JSON')
  }
  const { version, type: said, key, signature, body } = fieldsOf(value)
  if (version !== recordVersion)
    throw new PoisonError(
      'unknown-version',
      `it is of version ${typeof version === 'number' ? version : 'none'}, and this Leasehold reads ${recordVersion}`,
    )
  if (said !== type) throw new PoisonError('bad-shape', `its content is no ${type}`)
  const parsed = parseBody(type, body)
  if (parsed === null) throw new PoisonError('bad-shape', `its content is no whole ${type}`)
  if (typeof key !== 'string' || typeof signature !== 'string') throw new PoisonError('unsigned', 'it is not signed')
  return { body: parsed, keyId: key, signature, hash: hashOf(bytes) }
}

/** Not signed by a registered key is no evidence (prune R12). @throws PoisonError */
export const verifyOpened = <T extends keyof Bodies>(type: T, { body, keyId, signature }: Opened<T>, keys: Keys): KnownKey => {
  const key = keys.get(keyId)
  if (key === undefined) throw new PoisonError('unknown-key', 'it is signed with a key that no controller has registered')
  let text: string
  try {
    text = envelopeText(type, body, keyId)
  } catch {
    throw new PoisonError('bad-shape', 'it holds what is never signed')
  }
  if (!isSigned(text, signature, key.publicKey)) throw new PoisonError('wrong-signature', 'its signature is not that of its content')
  return key
}
