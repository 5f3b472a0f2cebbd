/** The installation itself: which database it is, what stops its removals, and its keys. */
import { Type } from 'typebox'
import { closed, component, may, oneOf, ref, text, textOrNull, time, timeOrNull, whole } from './kinds.ts'

export const Stop = component(
  'Stop',
  { scope: text({ description: '`*`: every scope.' }), code: oneOf(['elsewhere', 'rewound']), why: text(), since: time() },
  'No removal begins there, until a person says which database is the true one.',
)
const Key = component(
  'Key',
  { id: text(), createdAt: time(), retiredAt: timeOrNull() },
  'A key of the keyed tag; its secret is never shown. A retired one makes no new tags, and verifies on.',
)
export const Installation = component(
  'Installation',
  {
    installation: text(),
    epoch: whole({ description: 'Counted up at each start and adoption.' }),
    createdAt: time(),
    adoptedAt: timeOrNull(),
    former: Type.Array(text(), { description: 'Ids that this database had before it was forked.' }),
    heldSince: timeOrNull(),
    place: textOrNull({ description: 'Where it lived when it was last found right.' }),
    found: text({ description: 'Where it is now.' }),
    stops: Type.Array(ref(Stop)),
    keys: Type.Array(ref(Key)),
  },
  'Which installation this database is, and where it lives.',
)
export const installationComponents = [Stop, Key, Installation]

const reason = () => text({ minLength: 1, maxLength: 500, description: 'Why; kept in the audit.' })
export const reasonBody = closed({ reason: reason() })
export const adoptBody = closed({
  reason: reason(),
  original: may(
    oneOf(['stopped'], {
      description:
        'That no coordinator runs on the other database any more: two with one identity may both delete what the other one holds. Without it nothing is adopted.',
    }),
  ),
})
export const forkBody = closed({
  reason: reason(),
  when: may(oneOf(['stopped', 'always'], { description: 'Missing or `stopped`: only while removals are stopped.' })),
})
