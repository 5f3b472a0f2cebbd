/**
 * Filters for reports: which findings, leases and instances are shown, never what is deleted. Each asks one thing; there is no language (decisions 11). What a
 * filter asks and nobody can answer is shown and marked, never dropped: unknown is not no.
 */

/** As they are asked for; a missing one asks nothing. */
export interface ReportFilter {
  owner?: string | undefined
  kind?: string | undefined
  /** `key=value`, exactly. */
  label?: string | undefined
  olderThanSeconds?: number | undefined
}

/** What is known of one row; null: nobody knows. */
export interface ReportFacts {
  owner: string | null
  /** Of each of its resources. */
  kinds: readonly string[] | null
  /** Of each of its resources; null in the list: that one's can not be read. */
  labels: readonly (Readonly<Record<string, string>> | null)[] | null
}

export type Unknown = 'owner' | 'kind' | 'label'
/** Which filters can not be answered for it; null: one of them is answered no. */
export type Shown = readonly Unknown[] | null

export interface Label {
  key: string
  value: string
}
/** Null: it is no `key=value`. */
export const parseLabel = (text: string): Label | null => {
  const at = text.indexOf('=')
  return at < 1 ? null : { key: text.slice(0, at), value: text.slice(at + 1) }
}

type Answer = 'yes' | 'no' | 'unknown'

const labelAnswer = (labels: ReportFacts['labels'], wanted: Label | null): Answer => {
  if (labels === null) return 'unknown'
  if (wanted !== null && labels.some((one) => one !== null && Object.hasOwn(one, wanted.key) && one[wanted.key] === wanted.value))
    return 'yes'
  return labels.includes(null) ? 'unknown' : 'no'
}

export const shownBy = (filter: ReportFilter, facts: ReportFacts): Shown => {
  const answers: [Unknown, Answer][] = []
  if (filter.owner !== undefined) answers.push(['owner', facts.owner === null ? 'unknown' : facts.owner === filter.owner ? 'yes' : 'no'])
  if (filter.kind !== undefined) answers.push(['kind', facts.kinds === null ? 'unknown' : facts.kinds.includes(filter.kind) ? 'yes' : 'no'])
  if (filter.label !== undefined) answers.push(['label', labelAnswer(facts.labels, parseLabel(filter.label))])
  if (answers.some(([, answer]) => answer === 'no')) return null
  return answers.filter(([, answer]) => answer === 'unknown').map(([name]) => name)
}
