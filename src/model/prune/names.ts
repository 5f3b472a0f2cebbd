/** What may be called what, and how long a name may be: held before any change, because a Swarm refuses only after some of it was made. */

/** prune R3. */
export const applicationName = /^[a-z0-9][a-z0-9._-]*$/
/** A stack's name becomes a label and the beginning of every name: what Swarm takes at the beginning of each of them. */
export const releaseName = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?$/

export type SwarmKind = 'service' | 'network' | 'config' | 'secret' | 'volume'
export const swarmKinds: readonly SwarmKind[] = ['service', 'network', 'config', 'secret', 'volume']

const limits: Readonly<Record<SwarmKind, { most: number; pattern: RegExp; of: string }>> = {
  service: { most: 63, pattern: /^[a-zA-Z0-9](?:[-_]*[A-Za-z0-9]+)*$/, of: 'letters, digits, - and _' },
  network: { most: 64, pattern: /^[a-zA-Z0-9](?:[-_.]*[A-Za-z0-9]+)*$/, of: 'letters, digits, -, _ and .' },
  config: { most: 64, pattern: /^[a-zA-Z0-9](?:[-_.]*[A-Za-z0-9]+)*$/, of: 'letters, digits, -, _ and .' },
  secret: { most: 64, pattern: /^[a-zA-Z0-9](?:[-_.]*[A-Za-z0-9]+)*$/, of: 'letters, digits, -, _ and .' },
  volume: { most: 255, pattern: /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/, of: 'at least two letters, digits, -, _ and .' },
}

/** Why a Swarm would refuse the name; null: it would take it. The patterns cannot run away: each run ends in a letter or digit. */
export const nameProblem = (kind: SwarmKind, name: string): string | null => {
  const { most, pattern, of } = limits[kind]
  if (name.length > most) return `the ${kind} would be called "${name}", which has ${name.length} characters; a Swarm takes ${most}`
  return pattern.test(name)
    ? null
    : `the ${kind} would be called "${name}", and a Swarm takes only ${of} with a letter or digit at both ends`
}

/** Names that a Swarm takes for one, because it compares without case (prune R80): each with the earlier one. */
export const caseTwins = (names: readonly string[]): { name: string; twin: string }[] => {
  const first = new Map<string, string>()
  return names.flatMap((name) => {
    const twin = first.get(name.toLowerCase())
    if (twin === undefined) first.set(name.toLowerCase(), name)
    return twin === undefined ? [] : [{ name, twin }]
  })
}

/** Its own name as it is, or the release before the key (prune R55). */
export const scopedName = (release: string, key: string, own: string | undefined): string => own ?? `${release}_${key}`
