/** A fleet's box that is neither given out nor counted, nor taken back by its fleet, until somebody or something says otherwise. */
import type { HoldFacts } from './removal.ts'
import { anotherMayHave, type Stop } from './stop.ts'

export interface WaitingBox {
  instanceId: string
  /** As holds name it; null: it is not known yet. */
  resourceKey: string | null
  /** Null: not known yet. */
  scope: string | null
  /** ms, when its record was made. */
  madeAt: number
  /** ms, when a look last showed it as what was made; null: the last one contradicted that. */
  checkedAt: number | null
}

export const contradictedText = 'what stands under its name is not, or not provably, what was made (see its finding)'

/**
 * Why, or null: nothing stands against giving it out. A contradiction, a stop because another database may have given it to somebody (decisions 6), or a person's
 * hold on it: whoever says "not this" does not want it in other hands either.
 */
export const setAsideBy = (box: WaitingBox, stops: readonly Stop[], holds: readonly HoldFacts[]): string | null => {
  if (box.checkedAt === null) return contradictedText
  const stop = anotherMayHave({ scope: box.scope, at: box.madeAt }, stops)
  if (stop !== null) return stop
  const hold = holds.find(
    ({ targetType, targetId }) =>
      (targetType === 'instance' && targetId === box.instanceId) || (targetType === 'resource' && targetId === box.resourceKey),
  )
  return hold ? `hold ${hold.id}` : null
}
