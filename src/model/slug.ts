/** Names for people. They identify a live lease within a project, and nothing else ever (leases R1). */

const adjectives = [
  'amber',
  'brisk',
  'calm',
  'deft',
  'eager',
  'fair',
  'glad',
  'hardy',
  'keen',
  'lively',
  'mellow',
  'neat',
  'plain',
  'quick',
  'sunny',
  'tidy',
]
const nouns = [
  'badger',
  'cedar',
  'cove',
  'dune',
  'falcon',
  'fern',
  'harbor',
  'heron',
  'lark',
  'maple',
  'otter',
  'pine',
  'reef',
  'ridge',
  'stone',
  'wren',
]
const longest = 41

/** Lower case, `[a-z0-9]`, runs of anything else become one `-`, trimmed, at most 41 characters. Null when nothing is left. */
export const slugify = (text: string): string | null => {
  const slug = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, longest)
    .replace(/-+$/, '')
  return slug === '' ? null : slug
}

/** A slug for a lease whose holder asked for none. @param random two numbers in [0, 1) */
export const inventSlug = (random: readonly [number, number]): string =>
  `${adjectives[Math.floor(random[0] * adjectives.length)] as string}-${nouns[Math.floor(random[1] * nouns.length)] as string}`

/** On a collision with a live slug. @param suffix 4 hex digits */
export const withSuffix = (slug: string, suffix: string): string => `${slug}-${suffix}`
