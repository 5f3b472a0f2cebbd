/**
 * Where a database lives, as far as it can be told from inside, and whether two looks saw the same place (decisions 6). What a place does not say proves
 * nothing either way; what it says and differs is another place, because a removal by the wrong copy can't be taken back.
 */
export interface FilePlace {
  kind: 'file'
  /** `/etc/machine-id`; null where there is none. */
  machineId: string | null
  bootId: string | null
  device: string
  inode: string
  /** When the file was made, in ns; null where the file system does not say. */
  bornAt: string | null
}
export interface ServerPlace {
  kind: 'server'
  /** Of the cluster, fixed when it was made; null where it may not be read. */
  systemId: string | null
  /** Grows when a standby takes over, and when a cluster is restored to an earlier time. */
  timeline: number | null
  /** oid of the database in the cluster. */
  databaseOid: string
}
export type Place = FilePlace | ServerPlace

export type PlaceVerdict =
  | { kind: 'same' }
  | { kind: 'elsewhere'; why: string }
  /** Nothing differs, and what would tell could not be read. */
  | { kind: 'unknown'; why: string }

const elsewhere = (why: string): PlaceVerdict => ({ kind: 'elsewhere', why })
const differ = <T>(a: T | null, b: T | null): boolean => a !== null && b !== null && a !== b

const compareFiles = (then: FilePlace, now: FilePlace): PlaceVerdict => {
  if (differ(then.machineId, now.machineId)) return elsewhere('it was last used on another machine')
  // A copy is another file; a rename, a VACUUM and a moved folder keep it.
  if (then.inode !== now.inode || differ(then.bornAt, now.bornAt))
    return elsewhere('its file is not the one that was used last: it was copied or restored')
  // The same file by number and birth: a mount may be made anew, and its device then has another number.
  if (then.bornAt !== null && then.bornAt === now.bornAt) return { kind: 'same' }
  // Numbers of devices are given anew at each boot; within one they say which file system it is.
  if (then.device !== now.device && then.bootId !== null && then.bootId === now.bootId)
    return elsewhere('its file is on another file system than the one that was used last')
  return { kind: 'same' }
}

const compareServers = (then: ServerPlace, now: ServerPlace): PlaceVerdict => {
  if (differ(then.systemId, now.systemId)) return elsewhere('it was last used in another PostgreSQL cluster')
  if (then.databaseOid !== now.databaseOid)
    return elsewhere('it is another database of its PostgreSQL cluster than the one that was used last: it was copied or restored')
  if (differ(then.timeline, now.timeline))
    return elsewhere(
      `its PostgreSQL cluster went from timeline ${then.timeline} to ${now.timeline}: a standby took over, or it was restored to an earlier time, and the newest transactions may be lost`,
    )
  const unread = [now.systemId === null ? 'system identifier' : '', now.timeline === null ? 'timeline' : ''].filter((one) => one !== '')
  return unread.length === 0
    ? { kind: 'same' }
    : { kind: 'unknown', why: `the ${unread.join(' and the ')} of the PostgreSQL cluster may not be read by this user` }
}

export const comparePlaces = (then: Place, now: Place): PlaceVerdict => {
  if (then.kind === 'file' && now.kind === 'file') return compareFiles(then, now)
  if (then.kind === 'server' && now.kind === 'server') return compareServers(then, now)
  return elsewhere('it was last used in another kind of database')
}

/** What is known of a place after one more look at it: what can't be read just now is not forgotten. The two are the same place, as far as it can be told. */
export const remember = (then: Place | null, now: Place): Place => {
  if (then === null || then.kind !== now.kind) return now
  const said = Object.fromEntries(Object.entries(now).filter(([, value]) => value !== null))
  return { ...then, ...said } as Place
}

/** One line for people; nothing secret is in it. */
export const describePlace = (place: Place): string =>
  place.kind === 'file'
    ? `file inode ${place.inode} on device ${place.device} of machine ${place.machineId ?? '(it says no id)'}`
    : `database oid ${place.databaseOid} of PostgreSQL cluster ${place.systemId ?? '(not readable)'}, timeline ${place.timeline ?? '(not readable)'}`
