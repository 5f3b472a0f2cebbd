/** A small release, deployed with its records: networks, configs, secrets and services with the labels of their claims, made one after the other. */
import { createSwarm, type EngineCalls, type Swarm } from '../../src/providers/swarm/index.ts'
import type { Claim } from '../../src/model/prune/claims.ts'
import type { ReleaseUid } from '../../src/model/prune/record-names.ts'
import { claimId, claimLabel, namespaceLabel, uidLabel } from '../../src/model/prune/swarm/stamp.ts'
import { freshSigningKey, signerOf, type KnownKey, type StoredKey } from '../../src/prune/records/keys.ts'
import {
  deployRecorded,
  loadRecords,
  type Applied,
  type Applying,
  type Deployed,
  type DeployInput,
} from '../../src/prune/records/deploy.ts'
import { claimsOf, type SwarmRecords } from '../../src/prune/records/read.ts'
import type { RecordsContext } from '../../src/prune/records/write.ts'

export interface TestRelease {
  release: string
  application?: string
  configs?: readonly string[]
  networks?: readonly string[]
  secrets?: readonly string[]
  services?: readonly string[]
}

const never = new AbortController().signal

export const testContext = async (
  engine: EngineCalls,
  options: { controllerId?: string; key?: StoredKey; own?: readonly KnownKey[]; epoch?: number; stands?: () => boolean } = {},
): Promise<RecordsContext> => {
  const swarm = createSwarm(engine)
  const info = await swarm.info({ signal: never })
  if (info.kind !== 'manager') throw new Error('no manager')
  const controllerId = options.controllerId ?? 'prod'
  const signer = signerOf(options.key ?? freshSigningKey())
  let now = 1_780_000_000_000
  return {
    swarm,
    clusterId: info.clusterId,
    controllerId,
    signer,
    own: options.own ?? [{ publicKey: signer.publicKey, controllerId, standing: 'own' }],
    epoch: options.epoch ?? 1,
    stands: options.stands ?? (() => true),
    now: () => Promise.resolve(now++),
    signal: never,
  }
}

const kinds = ['network', 'config', 'secret', 'service'] as const
type MadeKind = (typeof kinds)[number]
const sectionOf = { network: 'networks', config: 'configs', secret: 'secrets', service: 'services' } as const

const namesOf = (release: TestRelease, kind: MadeKind): string[] =>
  (release[sectionOf[kind]] ?? []).map((name) => `${release.release}_${name}`)

export const claimsFor =
  (release: TestRelease) =>
  (uid: ReleaseUid): Claim[] =>
    kinds.flatMap((kind) => namesOf(release, kind).map((name) => ({ id: claimId(uid, kind, name), kind, name })))

const specOf = (kind: MadeKind, name: string, labels: Record<string, string>) => {
  if (kind === 'network') return { Name: name, Labels: labels, Driver: 'overlay', CheckDuplicate: true }
  if (kind === 'service')
    return { Name: name, Labels: labels, TaskTemplate: { ContainerSpec: { Image: 'none:none' } }, Mode: { Replicated: { Replicas: 0 } } }
  return { Name: name, Labels: labels, Data: Buffer.from(name).toString('base64') }
}

const listOf = async (swarm: Swarm, kind: MadeKind, wanted: { label?: { key: string; value: string } }) => {
  const listed = await swarm[sectionOf[kind]].list(wanted, { signal: never })
  if (listed.kind !== 'complete') throw new Error(listed.why)
  return listed.objects
}

/** What is there by its claim is not made again. */
const applyTo =
  (swarm: Swarm, release: TestRelease) =>
  async ({ uid }: Applying): Promise<Applied> => {
    const made = new Map<string, string>()
    for (const kind of kinds) {
      const there = new Map<string | undefined, string>()
      for (const one of await listOf(swarm, kind, { label: { key: uidLabel, value: uid } })) there.set(one.labels[claimLabel], one.id)
      for (const name of namesOf(release, kind)) {
        const claim = claimId(uid, kind, name)
        const known = there.get(claim)
        if (known !== undefined) {
          made.set(claim, known)
          continue
        }
        const labels = { [namespaceLabel]: release.release, [uidLabel]: uid, [claimLabel]: claim }
        const created = await swarm[sectionOf[kind]].create(specOf(kind, name, labels), { signal: never })
        if (created.kind !== 'created') return { kind: 'failed', error: JSON.stringify(created) }
        made.set(claim, created.id)
      }
    }
    return { kind: 'applied', made }
  }

export const deployTest = (
  context: RecordsContext,
  release: TestRelease,
  options: Partial<Pick<DeployInput, 'historyMax' | 'present' | 'apply' | 'again'>> = {},
): Promise<Deployed> =>
  deployRecorded(context, {
    application: release.application ?? 'edge',
    release: release.release,
    manifest: JSON.stringify({ ...release, application: undefined }),
    claims: claimsFor(release),
    present: [],
    historyMax: 10,
    apply: applyTo(context.swarm, release),
    ...options,
  })

export const recordsOn = async (context: RecordsContext): Promise<SwarmRecords> => {
  const loaded = await loadRecords(context)
  if (loaded.kind !== 'read') throw new Error(loaded.error)
  return loaded.records
}

/** Objects with a release's uid that no signed record of it claims by kind, name and claim. */
export const unrecorded = async (context: RecordsContext): Promise<string[]> => {
  const records = await recordsOn(context)
  const claimed = new Set(records.releases.flatMap((one) => claimsOf(one).map(({ id, kind, name }) => `${one.uid} ${kind} ${name} ${id}`)))
  const left: string[] = []
  for (const kind of kinds) {
    for (const { name, labels } of await listOf(context.swarm, kind, {})) {
      const uid = labels[uidLabel]
      if (uid !== undefined && !claimed.has(`${uid} ${kind} ${name} ${labels[claimLabel] ?? ''}`)) left.push(`${kind} ${name}`)
    }
  }
  return left
}

export const namesOn = async (swarm: Swarm): Promise<string[]> => {
  const all: string[] = []
  for (const kind of kinds)
    for (const { name, labels } of await listOf(swarm, kind, {})) if (labels[uidLabel] !== undefined) all.push(`${kind} ${name}`)
  return all.toSorted()
}
