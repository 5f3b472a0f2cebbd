/** What a release reaches outside of itself, held against what its application may (prune 2.2): nothing unless it is named there. */
import type { Allow } from '../app-set.ts'
import type { Compose, Problem } from '../compose/types.ts'

const sections = ['networks', 'volumes', 'configs', 'secrets'] as const

export const reachProblems = (compose: Compose, allow: Allow): Problem[] => {
  const problems: Problem[] = []
  const blame = (path: Problem['path'], message: string, list: keyof Allow, name: string): void =>
    void problems.push({ path, message, fix: `If it may, add "${name}" to allow.${list} of the application`, of: 'key' })
  for (const section of sections) {
    for (const [key, { external, name }] of Object.entries(compose[section])) {
      if (!external || name === undefined || allow[section].includes(name)) continue
      blame(
        [section, key],
        `the ${section.slice(0, -1)} "${name}" is not of this release, and the application may not reach it`,
        section,
        name,
      )
    }
  }
  for (const [name, { volumes }] of Object.entries(compose.services)) {
    for (const [index, { type, source = '' }] of (volumes ?? []).entries()) {
      if (type !== 'bind' || allow.hostPaths.some((one) => isWithin(source, one))) continue
      blame(['services', name, 'volumes', index], `the application may not reach ${source} of the nodes`, 'hostPaths', source)
    }
  }
  return problems
}

/** `/srv` allows `/srv` and `/srv/data`, and neither `/srv2` nor `/srv/../etc`. */
export const isWithin = (path: string, allowed: string): boolean => {
  if (!path.startsWith('/') || path.split('/').some((part) => part === '..' || part === '.')) return false
  const plain = (text: string): string => `${text.replace(/\/+/g, '/').replace(/\/$/, '')}/`
  return plain(path).startsWith(plain(allowed))
}
