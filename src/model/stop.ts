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
}

const hint = 'see "leasehold installation"'

export const stopText = (code: StopCode, scope: string): string =>
  code === 'elsewhere'
    ? `a stop of all removals, because this database was started elsewhere (${hint})`
    : `a stop of removals in ${scope}, because its ledger has forgotten things (${hint})`

const leftTo = 'the fork of this database: it belongs to installation'

/** As `heldBy` said it: is it somebody else's for ever? Then not even its clock is moved. */
export const isLeftByFork = (by: string): boolean => by.startsWith(leftTo)

/** After a fork: whatever was made before belongs to the other one, for ever. */
export const forkStop = (former: readonly string[], heldSince: number): Stop[] =>
  heldSince === 0 ? [] : [{ scope: '*', by: `${leftTo} ${former.at(-1) ?? '?'}`, madeBefore: heldSince }]
