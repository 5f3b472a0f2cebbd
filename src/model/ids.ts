/**
 * Identifiers. Branded so that one kind can't be passed for another; the makers live in `lib/ids.ts`, because the model
 * knows no randomness.
 */

declare const brand: unique symbol
type Branded<Name extends string> = string & { readonly [brand]: Name }

/** 12 characters, `[a-z]` first, then `[a-z0-9]`; owned by one instance for ever (orphans R1, U2). */
export type Ref = Branded<'Ref'>
/** `lh_` and 12 lower-case hex digits (leases R1). */
export type LeaseId = Branded<'LeaseId'>
export type InstanceId = Branded<'InstanceId'>
export type AttemptId = Branded<'AttemptId'>
export type RemovalId = Branded<'RemovalId'>
/** The account behind a backend, as the provider itself names it: `machine:<machine id>`, `aws:<account>`. */
export type ScopeId = Branded<'ScopeId'>
/** 8 characters, letter first; names one Leasehold installation. */
export type InstallationId = Branded<'InstallationId'>

const patterns = {
  ref: /^[a-z][a-z0-9]{11}$/,
  lease: /^lh_[0-9a-f]{12}$/,
  installation: /^[a-z][a-z0-9]{7}$/,
  requestKey: /^cat_[0-9a-f]{32}$/,
}

export const isRef = (text: string): text is Ref => patterns.ref.test(text)
export const isLeaseId = (text: string): text is LeaseId => patterns.lease.test(text)
export const isInstallationId = (text: string): text is InstallationId => patterns.installation.test(text)
/** A client's `createAttemptID`: `cat_` and 32 hex digits (leases R10). */
export const isRequestKey = (text: string): boolean => patterns.requestKey.test(text)
