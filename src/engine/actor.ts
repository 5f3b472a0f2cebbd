/** Who asks, and what they may: roles by project (decisions, Roles). */
import { LeaseholdError } from '../model/errors.ts'
import type { LeaseId } from '../model/ids.ts'
import type { Role } from '../model/wire.ts'

export interface Actor {
  /** The token's name: the owner of the leases that it creates. */
  name: string
  role: Role
  /** null: every project. */
  project: string | null
  /** Set for a lease's own token: it may beat and release that lease, nothing else. */
  onlyLease: LeaseId | null
}

export const seesProject = (actor: Actor, project: string): boolean => actor.project === null || actor.project === project
/** approver stands beside operator, not above it: sweeps, plans and holds are the operator's. */
export const isOperator = (actor: Actor): boolean => actor.onlyLease === null && (actor.role === 'operator' || actor.role === 'admin')
export const isAdmin = (actor: Actor): boolean => actor.onlyLease === null && actor.role === 'admin'
/** Administers every project, not just one. */
export const isGlobalAdmin = (actor: Actor): boolean => isAdmin(actor) && actor.project === null

const forbid = (message: string): never => {
  throw new LeaseholdError('forbidden', message)
}
export const requireOperator = (actor: Actor): void => {
  if (!isOperator(actor))
    forbid(`this needs the role operator or admin; this token is ${actor.onlyLease ? "a lease's own" : `${actor.role}`}`)
}
/** Approves plans that somebody else, or a sweep, made. */
export const requireApprover = (actor: Actor): void => {
  if (actor.onlyLease !== null || (actor.role !== 'approver' && actor.role !== 'admin'))
    forbid(`this needs the role approver or admin; this token is ${actor.onlyLease ? "a lease's own" : actor.role}`)
}
export const requireAdmin = (actor: Actor): void => {
  if (!isAdmin(actor)) forbid(`this needs the role admin; this token is ${actor.onlyLease ? "a lease's own" : actor.role}`)
}
export const requireGlobalAdmin = (actor: Actor): void => {
  if (!isGlobalAdmin(actor)) forbid('this needs the role admin over every project')
}
/** A lease's own token reads nothing but that lease. */
export const requireFull = (actor: Actor): void => {
  if (actor.onlyLease !== null) forbid("a lease's own token may beat and release that lease, nothing else")
}

/** The one project that a request is about: the token's own, else the one named, else `default`. */
export const projectFor = (actor: Actor, named: string | undefined): string => {
  if (named !== undefined && !seesProject(actor, named))
    throw new LeaseholdError('not_found', `project "${named}" does not exist or is not visible to this token`)
  return named ?? actor.project ?? 'default'
}

/** Where lists look: null is every project. */
export const listedProject = (actor: Actor, named: string | undefined): string | null =>
  named === undefined ? actor.project : projectFor(actor, named)

export const mayManageLease = (actor: Actor, lease: { id: string; owner: string; project: string }): boolean =>
  actor.onlyLease === null
    ? seesProject(actor, lease.project) && (lease.owner === actor.name || isOperator(actor))
    : actor.onlyLease === lease.id

export const maySeeLease = (actor: Actor, lease: { id: string; project: string }): boolean =>
  actor.onlyLease === null ? seesProject(actor, lease.project) : actor.onlyLease === lease.id
