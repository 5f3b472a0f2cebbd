/** Names that a Swarm takes for one because it compares without case, while its labels and filters do not (prune R80). Said before any change. */
import { type SwarmKind, nameProblem, releaseName } from './names.ts'

export interface NamedObject {
  kind: SwarmKind
  name: string
}

export interface NameCheck {
  release: string
  /** All objects that the release is about to have. */
  planned: readonly NamedObject[]
  /** Names of the releases that the Swarm has records of, this one among them or not. */
  releases: readonly string[]
  /** What is on the Swarm, of whomever. */
  present: readonly NamedObject[]
}

/** A release's name is a label and in the name of all of its objects; its records are named by its uid and have room for any (prune R79). */
const longestRelease = 63

const sameButCase = (a: string, b: string): boolean => a !== b && a.toLowerCase() === b.toLowerCase()

/** Everything that is wrong with the names, each a sentence; empty: nothing is (prune R79, R80). */
export const nameProblems = ({ release, planned, releases, present }: NameCheck): string[] => {
  const problems: string[] = []
  if (!releaseName.test(release) || release.length > longestRelease)
    problems.push(`"${release}" is no name for a release: use letters, digits, ".", "_" and "-", at most ${longestRelease} in all`)
  for (const other of new Set(releases)) {
    if (sameButCase(other, release)) problems.push(`the release "${other}" is there already and differs from "${release}" in case only`)
  }
  // A volume belongs to a node, and a node compares with case.
  const compared = [...planned, ...present].filter((one) => one.kind !== 'volume')
  const names = new Map<string, Set<string>>()
  for (const { kind, name } of compared) {
    const key = `${kind}/${name.toLowerCase()}`
    names.set(key, (names.get(key) ?? new Set()).add(name))
  }
  for (const { kind, name } of planned) {
    const problem = nameProblem(kind, name)
    if (problem !== null) problems.push(problem)
    if (kind === 'volume') continue
    for (const twin of names.get(`${kind}/${name.toLowerCase()}`) ?? []) {
      if (twin !== name) problems.push(`the ${kind} "${name}" and "${twin}" are one to a Swarm, which compares without case`)
    }
  }
  return [...new Set(problems)]
}
