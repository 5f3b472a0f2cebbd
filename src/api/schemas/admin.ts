/** What operators and administrators ask for. */
import { roles } from '../../model/wire.ts'
import { largestFleet, longestFleetTtlSeconds } from '../../model/fleet.ts'
import {
  anythingOrNull,
  closed,
  expected,
  flagOrNull,
  may,
  nonFiniteIsNull,
  numberOrNull,
  oneOf,
  text,
  textOrNull,
  textsOrNull,
  whole,
  wholeOrNull,
} from './kinds.ts'
import { targetTypes } from './views.ts'

const name = { pattern: '^[a-z][a-z0-9-]{0,38}$', [expected]: 'a-z, 0-9 and -, at most 39, a letter first' }
const projectName = () => may(textOrNull({ minLength: 1, maxLength: 100 }))
const reason = () => text({ minLength: 1, maxLength: 500, description: 'Why; shown wherever it stops something.' })
const tenYears = 315_360_000

export const tokenBody = closed({
  name: text({ minLength: 1, maxLength: 63, description: 'The owner of what is made with it.' }),
  role: oneOf(roles),
  project: may(
    textOrNull({
      minLength: 1,
      maxLength: 100,
      description: "Missing or null: every project for an admin of every project, else the admin's own.",
    }),
  ),
  expiresInSeconds: may(wholeOrNull({ minimum: 1, maximum: 316_224_000, description: 'Missing or null: until it is revoked.' })),
})
export const projectBody = closed({ name: text(name) })
export const backendBody = closed({
  name: text(name),
  project: projectName(),
  provider: text({ minLength: 1, maxLength: 100 }),
  config: may(anythingOrNull()),
  isDefault: may(flagOrNull({ description: 'Missing: true for the first of a project.' })),
})
export const fleetBody = closed({
  name: text(name),
  project: projectName(),
  backend: may(textOrNull({ minLength: 1, maxLength: 100, description: "Missing: the project's default." })),
  size: whole({ minimum: 0, maximum: largestFleet, description: 'How many are to be ready.' }),
  ttlSeconds: may(
    numberOrNull({
      description: `What each must be able to give; default 5400, capped at ${longestFleetTtlSeconds} with a warning.`,
      [expected]: 'a number of seconds, or null for the default',
      [nonFiniteIsNull]: true,
    }),
  ),
  labels: may(textsOrNull({ description: 'Labels of the boxes; a lease has its own.' })),
})
export const fleetChangeBody = closed({
  size: may(wholeOrNull({ minimum: 0, maximum: largestFleet })),
  paused: may(flagOrNull({ description: 'true: nothing is made or replaced; false: it goes on, also after a hold.' })),
})
export const holdBody = closed({
  targetType: oneOf(targetTypes),
  targetID: text({
    minLength: 1,
    maxLength: 500,
    description: 'A lease by id or slug, an instance by id or ref, a project, a scope, a resource as provider/location/native-id.',
  }),
  reason: reason(),
  durationSeconds: may(wholeOrNull({ minimum: 1, maximum: tenYears, description: 'Missing or null: until it is removed.' })),
})
export const freezeBody = closed({
  scope: may(textOrNull({ minLength: 1, maxLength: 500, description: 'Missing or `*`: every scope.' })),
  reason: reason(),
})
export const unfreezeBody = closed({ reason: may(textOrNull({ maxLength: 500, description: 'Kept in the audit.' })) })

export const byId = closed({ id: text({ minLength: 1 }) })
export const byName = closed({ name: text({ minLength: 1 }) })
export const byScope = closed({ scope: text({ minLength: 1, description: 'A scope, or `*`.' }) })
export const ofProject = closed({ project: may(text({ minLength: 1, description: 'Only of this project.' })) })
export const waitSeconds = may(whole({ minimum: 0, maximum: 50, default: 0, description: 'Long poll: wait so long for the first event.' }))
