/** What stops removals because this database may not be the one that decides: nobody asked for it, and only a person ends it (decisions 6). */

/** `elsewhere`: it was started where it did not live. `rewound`: a listing shows what its ledger has forgotten. */
export type StopCode = 'elsewhere' | 'rewound'

export interface Stop {
  /** `*`: all. */
  scope: string
  /** As `heldBy` says it. */
  by: string
  /** ms: only what was made before it; missing: everything. */
  madeBefore?: number
  /** ms: since when this database may be a copy; missing: a fork left it, which is no doubt. */
  since?: number
}

const hint = 'see "leasehold installation"'

export const stopText = (code: StopCode, scope: string): string =>
  code === 'elsewhere'
    ? `a stop of all removals, because this database was started elsewhere (${hint})`
    : `a stop of removals in ${scope}, because its ledger has forgotten things (${hint})`

const leftTo = 'the fork of this database: it belongs to installation'

/** As `heldBy` said it: is it somebody else's for ever? Then not even its clock is moved. */
export const isLeftByFork = (by: string): boolean => by.startsWith(leftTo)

/**
 * Who says that another database may have given this box to somebody since, or ended it: it is nobody's to give out here, and its clock is left alone. What was
 * made in the very millisecond of the stop counts as before it. Null: nobody; what this database made since is its own.
 * @param made `at` in ms; where its account is not known, any may be meant
 */
export const anotherMayHave = (made: { scope: string | null; at: number }, stops: readonly Stop[]): string | null =>
  stops.find(
    ({ scope, madeBefore, since }) =>
      (scope === '*' || made.scope === null || scope === made.scope) &&
      (madeBefore === undefined ? since === undefined || made.at <= since : made.at < madeBefore),
  )?.by ?? null

/** After a fork: whatever was made before belongs to the other one, for ever. */
export const forkStop = (former: readonly string[], heldSince: number): Stop[] =>
  heldSince === 0 ? [] : [{ scope: '*', by: `${leftTo} ${former.at(-1) ?? '?'}`, madeBefore: heldSince }]
