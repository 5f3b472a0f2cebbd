/**
 * Whose a release is, in text: the owner id `cd/<controller>/<application>` and the stamp that names it together with the release. Both are parsed
 * strictly: what is not exactly ours is nobody's, and what is nobody's is never a candidate for anything (prune R5-R7).
 */
import type { ReleaseName } from './record-names.ts'
import { applicationName } from './names.ts'

export const defaultControllerId = 'default'
/** prune R13. */
export const longestControllerId = 40
const ownerPrefix = 'cd/'
const stampKind = 'release'

/** prune R1: an empty controller id is `default`, on both sides. */
export const controllerIdOf = (given: string): string => (given === '' ? defaultControllerId : given)

/** Why it is no controller id (prune R3); null: it is one. */
export const controllerIdProblem = (text: string): string | null => {
  if (text === '') return 'a controller id is not empty'
  if (/[/:]/.test(text)) return `the controller id "${text}" has a / or a : in it`
  if (/[\p{White_Space}\uFEFF]/u.test(text)) return `the controller id "${text}" has white space in it`
  return text.length > longestControllerId ? `the controller id "${text}" is longer than ${longestControllerId} characters` : null
}

/**
 * Why a Swarm could not keep its registration, which is a config of that name (prune 7.3); null: it could. Said before any change.
 * @param text a valid controller id
 */
export const controllerNameProblem = (text: string): string | null =>
  /^[A-Za-z0-9._-]*[A-Za-z0-9]$/.test(text)
    ? null
    : `the controller id "${text}" can't be registered on a Swarm: use letters, digits, ".", "_" and "-", with a letter or digit at its end`

/**
 * `cd/<controller>/<application>` (prune R1).
 * @throws for names that R3 refuses: nothing is ever stamped with them
 */
export const ownerId = (controller: string, application: string): string => {
  const id = controllerIdOf(controller)
  const problem = controllerIdProblem(id)
  if (problem !== null) throw new Error(problem)
  if (!applicationName.test(application)) throw new Error(`"${application}" is no name of an application`)
  return `${ownerPrefix}${id}/${application}`
}

/** The application, if the owner id is this controller's (prune R4); null: it is not. */
export const applicationOf = (owner: string, controller: string): string | null => {
  const prefix = `${ownerPrefix}${controllerIdOf(controller)}/`
  if (!owner.startsWith(prefix)) return null
  const rest = owner.slice(prefix.length)
  return rest === '' || rest.includes('/') ? null : rest
}

/** The controller of an owner id; null: it is no controller's (an `apply/…`, an old form, garbage: prune R6, R10). */
export const controllerOf = (owner: string): string | null => {
  const controller = /^cd\/([^/]+)\/[^/]+$/.exec(owner)?.[1]
  return controller !== undefined && controllerIdProblem(controller) === null ? controller : null
}

/** Why the engine writes no such owner id (prune R3); null: it does. */
export const ownerProblem = (owner: string): string | null =>
  owner.includes(':') ? `the owner id "${owner}" has a : in it, which begins the name of what is owned` : null

/**
 * The full stamp `<owner id>:release/<name>` (prune R2).
 * @throws for an owner id with a `:` (prune R3)
 */
export const stampOf = (owner: string, release: string): string => {
  const problem = ownerProblem(owner)
  if (problem !== null) throw new Error(problem)
  return `${owner}:${stampKind}/${release}`
}

export interface Stamp {
  owner: string
  release: ReleaseName
}

/** Null: missing, blank, of another kind, or garbage (prune R5, R6). */
export const parseStamp = (text: string | undefined): Stamp | null => {
  const at = text?.indexOf(':') ?? -1
  if (text === undefined || at <= 0) return null
  const [kind, name, ...more] = text.slice(at + 1).split('/')
  return kind === stampKind && name !== undefined && name !== '' && more.length === 0
    ? { owner: text.slice(0, at), release: name as ReleaseName }
    : null
}

/** Of one revision: its own release's name, and the stamp that it carries. */
export interface Stamped {
  release: string
  stamp: string | undefined
}

/** The application that owns it, of this controller; null: unowned (prune R5, R6: copied, another's, another kind, none). */
export const ownedBy = ({ release, stamp }: Stamped, controller: string): string | null => {
  const parsed = parseStamp(stamp)
  return parsed !== null && parsed.release === release ? applicationOf(parsed.owner, controller) : null
}

/**
 * Whether a plan must write the release anew for its stamp alone (prune R9): it names somebody else, or can't be read. None at all is no difference,
 * or the first upgrade would write everything anew.
 */
export const stampDiffers = (now: string | undefined, wanted: string): boolean => now !== undefined && now !== wanted

/** A current revision without a stamp, of a release that is declared, equal in content: never stamped by itself, so a person is told (prune R11). */
export const declaredButUnclaimed = (now: string | undefined, contentEqual: boolean): boolean => now === undefined && contentEqual
