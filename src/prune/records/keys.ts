/** The controller's key: Ed25519, made once, signs every record. A private key is in the database and here, and goes nowhere else (prune R12). */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto'

export interface StoredKey {
  /** SPKI, DER, base64. */
  publicKey: string
  /** PKCS 8, DER, base64. */
  privateKey: string
}

/** A new key, not stored yet. */
export const freshSigningKey = (): StoredKey => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  return {
    publicKey: publicKey.export({ format: 'der', type: 'spki' }).toString('base64'),
    privateKey: privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64'),
  }
}

/** What a record names its key by. */
export const keyIdOf = (publicKey: string): string =>
  createHash('sha256').update(Buffer.from(publicKey, 'base64')).digest('hex').slice(0, 16)

export interface Signer {
  keyId: string
  publicKey: string
  /** Base64. */
  sign(text: string): string
}

/** @throws where the key is none */
export const signerOf = (key: StoredKey): Signer => {
  const privateKey = createPrivateKey({ key: Buffer.from(key.privateKey, 'base64'), format: 'der', type: 'pkcs8' })
  return {
    keyId: keyIdOf(key.publicKey),
    publicKey: key.publicKey,
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString('base64'),
  }
}

/** Whose a key is: `own` is in our database, or was pinned there by a person; `registered` stands in a registration on the Swarm. */
export interface KnownKey {
  publicKey: string
  controllerId: string
  standing: 'own' | 'registered'
}

/** Keys by their ids. */
export type Keys = ReadonlyMap<string, KnownKey>

export const keysBy = (known: readonly KnownKey[]): Keys => {
  const keys = new Map<string, KnownKey>()
  // What our database says of a key is not changed by what a Swarm says.
  for (const one of known) if (keys.get(keyIdOf(one.publicKey))?.standing !== 'own') keys.set(keyIdOf(one.publicKey), one)
  return keys
}

const parsed = new Map<string, KeyObject | null>()
const keyObject = (publicKey: string): KeyObject | null => {
  const known = parsed.get(publicKey)
  if (known !== undefined) return known
  let made: KeyObject | null = null
  try {
    const key = createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' })
    made = key.asymmetricKeyType === 'ed25519' ? key : null
  } catch {
    made = null
  }
  if (parsed.size > 1000) parsed.clear()
  parsed.set(publicKey, made)
  return made
}

/** False also for what is no key or no signature: nothing that a Swarm holds makes it throw. */
export const isSigned = (text: string, signature: string, publicKey: string): boolean => {
  const key = keyObject(publicKey)
  if (key === null || !/^[A-Za-z0-9+/]{86}==$/.test(signature)) return false
  return verify(null, Buffer.from(text), key, Buffer.from(signature, 'base64'))
}
