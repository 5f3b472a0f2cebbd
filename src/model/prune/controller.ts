/**
 * Who a controller id belongs to on a Swarm: whoever registered it and can sign for its key (prune R74, 7.3). Another one with the same id, and a clone
 * with the same key, are told apart here; what follows from it is never a write of theirs.
 */
import type { AppSetSource, ControllerBody } from './records.ts'

/** A person gave the id to another installation, whose key counts from this epoch on (prune 7.3). */
export interface Reclaim {
  epoch: number
  instanceUid: string
  /** SPKI, DER, base64. */
  publicKey: string
  /** By that very key. */
  signature: string
}

/** What a Swarm says of one controller id. */
export interface Registration {
  /** The Swarm's id of the config. */
  id: string
  /** Its version there: what a renewal is bound to. */
  version: number
  body: ControllerBody
  epoch: number
  /** The nonce of the process that has the lease; null: nobody has. */
  holder: string | null
  beat: number
  /** The app set as the controller named it last. */
  appSet: AppSetSource
  /** Oldest first. */
  reclaims: readonly Reclaim[]
  /** When the Swarm says that it was last written, by its own clock; for people. */
  writtenAt: string
}

/** Who has the id today. */
export const ownerOf = ({ body, reclaims }: Registration): { instanceUid: string; publicKey: string } =>
  reclaims.at(-1) ?? { instanceUid: body.instanceUid, publicKey: body.publicKey }

/** Every key that ever signed for the id: old signatures are verified for ever. */
export const keysOf = (registration: Registration): string[] => [
  registration.body.publicKey,
  ...registration.reclaims.map((one) => one.publicKey),
]

export interface RivalView {
  controllerId: string
  instance: string
  appSet: string
  lastBeatAt: string
}

/** For people: who holds the id. */
export const rivalOf = (registration: Registration): RivalView => ({
  controllerId: registration.body.controllerId,
  instance: ownerOf(registration).instanceUid,
  appSet: registration.appSet.source,
  lastBeatAt: registration.writtenAt,
})

export type RegistrationVerdict =
  | { kind: 'unregistered' }
  | { kind: 'ours'; registration: Registration; appSetChanged: boolean }
  /** Our key was registered once, and a person gave the id to another since. */
  | { kind: 'given-away'; rival: RivalView }
  | { kind: 'another'; rival: RivalView }
  | { kind: 'unreadable'; why: string }

export type SeenRegistration = { kind: 'absent' } | { kind: 'read'; registration: Registration } | { kind: 'unreadable'; why: string }

/** prune R74, 7.3; cases B3, prune 15. */
export const judgeRegistration = (seen: SeenRegistration, mine: { publicKey: string; appSet: AppSetSource }): RegistrationVerdict => {
  if (seen.kind === 'absent') return { kind: 'unregistered' }
  if (seen.kind === 'unreadable') return seen
  const { registration } = seen
  if (ownerOf(registration).publicKey === mine.publicKey)
    return { kind: 'ours', registration, appSetChanged: registration.appSet.fingerprint !== mine.appSet.fingerprint }
  const rival = rivalOf(registration)
  return { kind: keysOf(registration).includes(mine.publicKey) ? 'given-away' : 'another', rival }
}

export const rivalText = ({ controllerId, instance, appSet, lastBeatAt }: RivalView): string =>
  `the controller id "${controllerId}" is held by the instance ${instance}, which runs ${appSet} and was last heard of at ${lastBeatAt}`

/** What a controller may do now, and what scripts are told: 0 it may write, 3 it only reports. */
export type Standing =
  | { mode: 'act'; epoch: number; appSetChanged: boolean }
  | { mode: 'report'; code: ReportOnly; why: string; rival: RivalView | null }
export type ReportOnly = 'another-controller' | 'given-away' | 'unreadable-registration' | 'standing-by' | 'no-answer' | 'refused'

/** Another replica of one's own, or a clone, is at work: that is no fault of the configuration (prune 7.3). */
export const standingExitCode = (standing: Standing): number => (standing.mode === 'act' || standing.code === 'standing-by' ? 0 : 3)
