/** Leases on the wire: `LeaseView` of `model/wire.ts`, and what is asked of them. */
import { Type } from 'typebox'
import { leaseStates, type Access as AccessView } from '../../model/wire.ts'
import {
  closed,
  component,
  expected,
  flag,
  flagOrNull,
  limit,
  may,
  nonFiniteIsNull,
  numberOrNull,
  oneOf,
  reportFilters,
  text,
  textOrNull,
  texts,
  textsOrNull,
  time,
  timeOrNull,
  unknowns,
  whole,
} from './kinds.ts'

/** How far the taking back of a lease is. */
export const Cleanup = closed({
  state: oneOf(['none', 'preparing', 'removing', 'verifying', 'gone', 'gave-up', 'closed', 'failed', 'held', 'wiping', 'returned'], {
    description:
      'gone: absence verified; failed: the last try failed, see retryAt; held: a hold or a freeze stops it; gave-up: it is no longer tried; closed: a person said that nothing more is to be done; wiping: its box is to go back to its fleet; returned: it did, and nothing of its holder is left in it.',
  }),
  removalID: textOrNull(),
  reason: textOrNull(),
  attempts: whole(),
  error: textOrNull(),
  failedAt: timeOrNull(),
  retryAt: timeOrNull(),
  startedAt: timeOrNull(),
  claimExpiresAt: timeOrNull(),
  goneAt: timeOrNull(),
  stuck: flag(),
  heldBy: textOrNull(),
  closedBy: textOrNull({ description: 'Who ended it without proof; null: it was not closed.' }),
  mayBeLeft: Type.Union([Type.Array(text()), Type.Null()], {
    description:
      'Of one that was closed, by name what nobody has proved gone; empty: nobody knows what; null: nothing is left, or it is not closed.',
  }),
  leftTo: textOrNull({ description: 'The installation that a fork of this database left it to, where it may be in use; null: none did.' }),
})

export const Lease = component(
  'Lease',
  {
    id: text(),
    slug: text(),
    state: oneOf(leaseStates, { description: 'provisioning is live; released, expired and failed never become live again.' }),
    project: text(),
    owner: text(),
    provider: text(),
    backend: text(),
    scope: textOrNull(),
    location: textOrNull(),
    instanceID: text(),
    ref: text(),
    cloudID: textOrNull(),
    cloudImmutableID: textOrNull(),
    createdAt: time(),
    updatedAt: time(),
    lastTouchedAt: time(),
    expiresAt: time(),
    ttlSeconds: whole(),
    idleTimeoutSeconds: whole(),
    keep: flag(),
    labels: texts(),
    createAttemptID: textOrNull(),
    releasedAt: timeOrNull(),
    endedAt: timeOrNull(),
    retainedAt: timeOrNull(),
    retainUntil: timeOrNull(),
    releaseDeletesServer: flagOrNull(),
    failureCode: textOrNull(),
    failureError: textOrNull(),
    provisioningResourceMayExist: flag(),
    accessWarning: textOrNull(),
    fleet: textOrNull({ description: 'The fleet that it was asked of.' }),
    cleanup: Cleanup,
    waitsUntil: may(time()),
    unknown: unknowns(),
    cleanupAttempts: may(whole()),
    cleanupError: may(text()),
    cleanupFailedAt: may(time()),
    cleanupRetryAt: may(time()),
    cleanupStartedAt: may(time()),
    cleanupClaimExpiresAt: may(time()),
  },
  "A holder's right to an instance.",
)

export const Access = Type.Unsafe<AccessView>({
  $id: 'Access',
  description: 'How the holder reaches into the box by itself.',
  type: 'object',
  required: ['kind'],
  additionalProperties: false,
  properties: {
    kind: {
      type: 'string',
      enum: ['namespace', 'session', 'docker', 'none'],
      description:
        '`none`: no command can run in it, and only `why` is set. `docker`: host, container and folder are; else folder, machineID and bootID.',
    },
    why: { type: 'string' },
    folder: { type: 'string' },
    machineID: { type: 'string' },
    bootID: { type: 'string' },
    pid: { type: 'integer', description: 'For `namespace`, with pidNamespaceInode: a pid alone is no identity.' },
    pidNamespaceInode: { type: 'string' },
    userNamespace: { type: 'boolean' },
    host: { type: 'string', description: "The Engine's address, for `docker`." },
    tls: {
      type: 'object',
      description: 'Paths of PEM files, where the address is one with `tcp://`.',
      required: ['ca', 'cert', 'key'],
      additionalProperties: false,
      properties: { ca: { type: 'string' }, cert: { type: 'string' }, key: { type: 'string' } },
    },
    container: { type: 'string', description: 'Its id.' },
    user: { type: 'string', description: 'Whom commands run as; missing: root.' },
  },
})

/** Nothing of a lease is set in a box that was made before it. */
export const Holder = closed({
  leaseID: text({ description: 'To be set as `LEASEHOLD_LEASE_ID`.' }),
  leaseToken: text({ description: 'To be set as `LEASEHOLD_LEASE_TOKEN`: may beat and release this lease, nothing else.' }),
})

const seconds = (description: string) =>
  may(numberOrNull({ description, [expected]: 'a number of seconds, or null for the default', [nonFiniteIsNull]: true }))
const name = (description: string) => may(textOrNull({ description, minLength: 1, maxLength: 100 }))

const createFields = {
  leaseID: may(
    textOrNull({
      pattern: '^lh_[0-9a-f]{12}$',
      [expected]: 'lh_ and 12 lower-case hex digits',
      description: 'An id of your own choice, never used before.',
    }),
  ),
  slug: name('A name for people; made up when missing. A suffix is added when it is taken.'),
  provider: name("Without it, and without `backend`: the project's default backend."),
  backend: name("One of the project's backends."),
  project: name("Without it the token's own, else `default`."),
  fleet: name('Takes a box of this fleet that is ready, at once; where none is, one is made.'),
  ttlSeconds: seconds('The longest life; default 5400, capped at 86400 with a warning; 0 or less gives the default.'),
  idleTimeoutSeconds: seconds(
    'Ends when not touched for so long; default 1800, capped at 86400 with a warning; 0 or less gives the default.',
  ),
  keep: may(flagOrNull({ description: 'A release without `delete` then leaves the box. Both clocks run all the same.' })),
  labels: may(textsOrNull({ description: 'Labels for people; those that begin with `leasehold` are reserved.' })),
}
const requestKey = { pattern: '^cat_[0-9a-f]{32}$', [expected]: 'cat_ and 32 lower-case hex digits' }

export const createBody = closed({
  ...createFields,
  createAttemptID: may(textOrNull({ ...requestKey, description: 'Makes the create repeatable: the same key answers the same lease.' })),
})
export const putBody = closed(createFields)
export const cancelBody = closed({ createAttemptID: text(requestKey) })

const provider = { pattern: '^[a-z][a-z0-9-]{0,62}$', [expected]: 'the name of a provider: a-z, 0-9 and -' }
export const heartbeatBody = closed({
  idleTimeoutSeconds: may(
    numberOrNull({
      description: 'Replaces the idle time when above 0; other numbers and null change nothing.',
      [expected]: 'a number of seconds',
      [nonFiniteIsNull]: true,
    }),
  ),
  expectedProvider: may(textOrNull({ ...provider, description: 'Refused with provider_mismatch when the lease is of another.' })),
})
export const releaseBody = closed({
  delete: may(
    flagOrNull({
      description:
        'true: the box goes; false: it stays; missing: it goes unless the lease is kept; a box of a fleet goes back to it where it can be wiped.',
    }),
  ),
  expectedProvider: may(textOrNull(provider)),
})
export const adminReleaseBody = closed({ delete: may(flagOrNull({ description: 'As in the release by its holder.' })) })

const states = may(Type.Array(oneOf(leaseStates), { description: 'Only these; repeated, or separated by commas.' }))
const common = { state: states, provider: may(text({ minLength: 1 })), project: may(text({ minLength: 1 })), limit: limit() }
export const leaseQuery = closed({ ...common, ...reportFilters })
export const debtQuery = closed({ ...common, owner: may(text({ minLength: 1 })) })

export const leaseKey = closed({ id: text({ description: 'The id of a lease, or the slug of a live one.', minLength: 1 }) })
export const leaseId = closed({ id: text({ description: 'The id of a lease.', minLength: 1 }) })
