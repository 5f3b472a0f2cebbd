/** The key of a removal: the account, the attempt whose resource goes, and with it its instance and lease. What disagrees with it is refused (leases R75). */

export interface RemovalKey {
  scope: string
  ref: string
  attemptId: string
  instanceId: string
}

export interface KeyFacts {
  /** As its own row has it now: a late answer may name another account than the one in which it was asked for. */
  attempt: RemovalKey
  /** What is bound or planned. */
  members: readonly { scope: string; kind: string; nativeId: string }[]
}

/** Why nothing of this removal may be touched; null: everything agrees. */
export const keyMismatch = (removal: RemovalKey, { attempt, members }: KeyFacts): string | null => {
  const words = { attemptId: 'id', instanceId: 'instance', ref: 'ref', scope: 'account' } as const
  for (const key of ['attemptId', 'instanceId', 'ref', 'scope'] as const)
    if (attempt[key] !== removal[key]) return `its attempt has another ${words[key]} (${attempt[key]}) than the removal (${removal[key]})`
  const stranger = members.find((member) => member.scope !== removal.scope)
  return stranger === undefined
    ? null
    : `${stranger.kind} ${stranger.nativeId} is of account ${stranger.scope}, and the removal of ${removal.scope}`
}
