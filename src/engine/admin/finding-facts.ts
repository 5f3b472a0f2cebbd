/** Whom a finding concerns, and what it is about, as far as anybody knows: what filters of reports ask. */
import type { ReportFacts } from '../../model/report-filter.ts'
import { rowsIn } from '../../store/bulk.ts'
import type { FindingRow } from '../../store/findings.ts'
import type { LeaseRow } from '../../store/leases.ts'
import type { Session } from '../../store/store.ts'
import type { ShownMember } from '../sweep/shown.ts'

export const nothingKnown: ReportFacts = { owner: null, kinds: null, labels: null }

interface Evidence {
  members?: ShownMember[]
  ref?: unknown
  lease?: unknown
}

const evidenceOf = (row: FindingRow): Evidence => JSON.parse(row.evidence) as Evidence
const refOf = (row: FindingRow): string | null => {
  const told = evidenceOf(row).ref
  return row.ref ?? (typeof told === 'string' ? told : null)
}

/** By the ledger, which remembers the lease of a ref for ever; else by what the finding is about. */
const leasesOf = async (session: Session, rows: readonly FindingRow[]): Promise<Map<string, LeaseRow>> => {
  const refs = rows.flatMap((row) => refOf(row) ?? [])
  const owners = rows.filter((row) => row.target_type === 'instance').map((row) => row.target_id)
  const ledger = [...(await rowsIn(session, 'ledger', 'ref', refs)), ...(await rowsIn(session, 'ledger', 'owner_id', owners))]
  const leaseOfRef = new Map<string, string>()
  const leaseOfOwner = new Map<string, string>()
  for (const row of ledger) {
    const { lease } = JSON.parse(row.parents) as { lease?: string }
    if (lease === undefined) continue
    leaseOfRef.set(row.ref, lease)
    leaseOfOwner.set(row.owner_id, lease)
  }
  const named = new Map(
    rows.flatMap((row): [string, string][] => {
      const id = row.target_type === 'lease' ? row.target_id : (leaseOfRef.get(refOf(row) ?? '') ?? leaseOfOwner.get(row.target_id))
      return id === undefined ? [] : [[row.id, id]]
    }),
  )
  const leases = new Map((await rowsIn(session, 'leases', 'id', [...named.values()])).map((row): [string, LeaseRow] => [row.id, row]))
  return new Map(
    rows.flatMap((row): [string, LeaseRow][] => {
      const lease = leases.get(named.get(row.id) ?? '')
      // A ref of another project that shows up here says nothing of that project's people.
      return lease === undefined || lease.project !== row.project ? [] : [[row.id, lease]]
    }),
  )
}

const kindsOf = async (
  session: Session,
  rows: readonly FindingRow[],
  leases: ReadonlyMap<string, LeaseRow>,
): Promise<Map<string, string>> => {
  const instances = await rowsIn(
    session,
    'instances',
    'id',
    [...leases.values()].map((lease) => lease.instance_id),
  )
  const bound = new Map(instances.map((row): [string, string | null] => [row.id, row.attempt_id]))
  const attemptOf = (row: FindingRow): string | null => row.attempt_id ?? bound.get(leases.get(row.id)?.instance_id ?? '') ?? null
  const attempts = new Map(
    (
      await rowsIn(
        session,
        'attempts',
        'id',
        rows.flatMap((row) => attemptOf(row) ?? []),
      )
    ).map((row): [string, string | null] => [row.id, row.kind]),
  )
  return new Map(
    rows.flatMap((row): [string, string][] => {
      const kind = attempts.get(attemptOf(row) ?? '') ?? null
      return kind === null ? [] : [[row.id, kind]]
    }),
  )
}

/** What a listing showed of the resources goes before what our own rows say: a finding is about what is there. */
export const findingFacts = async (session: Session, rows: readonly FindingRow[]): Promise<Map<string, ReportFacts>> => {
  const leases = await leasesOf(session, rows)
  const kinds = await kindsOf(session, rows, leases)
  return new Map(
    rows.map((row) => {
      const members = evidenceOf(row).members ?? []
      const lease = leases.get(row.id)
      const kind = kinds.get(row.id)
      // What an older version noted has no labels.
      const seen = members.length > 0 && members.every((member) => member.labels !== undefined)
      const ofLease = lease === undefined || members.length > 0 ? null : [JSON.parse(lease.labels) as Record<string, string>]
      return [
        row.id,
        {
          owner: lease?.owner ?? null,
          kinds: members.length > 0 ? members.map((member) => member.kind) : kind === undefined ? null : [kind],
          labels: seen ? members.map((member) => member.labels ?? null) : ofLease,
        },
      ]
    }),
  )
}
