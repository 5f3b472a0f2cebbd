/** One kind of object of a Swarm: listed, read, made, changed and removed, always by its id where it has one. */
import type { CallContext } from '../contract.ts'
import { type EngineCalls, failureOf, saysAbsent, saysDraining, saysInUse, saysStale, saysTaken } from './calls.ts'
import type { CreateOutcome, InspectOutcome, ListOutcome, RemoveOutcome, UpdateOutcome } from './outcomes.ts'

export type Labels = Readonly<Record<string, string>>

export interface SwarmObject<Spec> {
  /** A volume's is its name: it has no other. */
  id: string
  name: string
  /** Null where the kind has none: networks and volumes never change. */
  version: number | null
  labels: Labels
  /** As the Engine writes it. */
  createdAt: string
  updatedAt: string
  spec: Spec
}

export interface Wanted {
  /** A key alone, or a key and a value. */
  label?: { key: string; value?: string }
  /** What the name begins with (of a volume: has in it). A network is found by its whole name only (docker facts 3.2). */
  name?: string
}

export interface Objects<Spec, NewSpec = Spec> {
  list(wanted: Wanted, context: CallContext): Promise<ListOutcome<SwarmObject<Spec>>>
  /** By id, or by a name that is exact. */
  inspect(id: string, context: CallContext): Promise<InspectOutcome<SwarmObject<Spec>>>
  create(spec: NewSpec, context: CallContext): Promise<CreateOutcome>
  remove(id: string, context: CallContext): Promise<RemoveOutcome>
}

/** Kinds that can be changed: only as the version that was read (docker facts 3.5). */
export interface ChangingObjects<Spec> extends Objects<Spec> {
  update(id: string, version: number, spec: Spec, context: CallContext): Promise<UpdateOutcome>
}

export interface KindOptions<Spec> {
  /** `/configs` */
  path: string
  /** What is created is sent there, below the path. */
  createPath: string
  read: (raw: unknown) => SwarmObject<Spec>
  /** What the listing's answer holds. */
  listed?: (body: unknown) => unknown
}

export const segment = (text: string): string => encodeURIComponent(text)

/** @throws for an empty value: to an Engine that means "any" (prune R34, docker facts 3.2) */
export const filtersOf = ({ label, name }: Wanted): string | undefined => {
  if (label?.value === '' || label?.key === '' || name === '') throw new Error('an empty filter would select everything')
  if (label === undefined && name === undefined) return undefined
  return JSON.stringify({
    ...(label && { label: [label.value === undefined ? label.key : `${label.key}=${label.value}`] }),
    ...(name !== undefined && { name: [name] }),
  })
}

export const objectsOf = <Spec>(engine: EngineCalls, options: KindOptions<Spec>): ChangingObjects<Spec> => {
  const { path, read } = options
  return {
    async list(wanted, { signal }) {
      const filters = filtersOf(wanted)
      try {
        const { body } = await engine.call<unknown>({ method: 'GET', path, query: { filters }, signal })
        const raw = options.listed ? options.listed(body) : body
        if (!Array.isArray(raw)) return { kind: 'incomplete', why: `the Engine answered no list of ${path.slice(1)}` }
        return { kind: 'complete', objects: raw.map((one: unknown) => read(one)) }
      } catch (error) {
        return { kind: 'incomplete', why: failureOf(error).text }
      }
    },
    async inspect(id, { signal }) {
      try {
        const { body } = await engine.call<unknown>({ method: 'GET', path: `${path}/${segment(id)}`, signal })
        return { kind: 'present', object: read(body) }
      } catch (error) {
        const failure = failureOf(error)
        return saysAbsent(failure) ? { kind: 'absent' } : { kind: 'unknown', error: failure.text }
      }
    },
    async create(spec, { signal }) {
      try {
        const { body } = await engine.call<Record<string, unknown>>({
          method: 'POST',
          path: `${path}${options.createPath}`,
          body: spec,
          signal,
        })
        const id = body['ID'] ?? body['Id'] ?? body['Name']
        return typeof id === 'string' ? { kind: 'created', id } : { kind: 'uncertain', error: 'the Engine named no id' }
      } catch (error) {
        const failure = failureOf(error)
        if (saysTaken(failure)) return { kind: 'taken', why: failure.text }
        return failure.kind === 'answer' && failure.status < 500
          ? { kind: 'rejected', why: failure.text }
          : { kind: 'uncertain', error: failure.text }
      }
    },
    async update(id, version, spec, { signal }) {
      try {
        await engine.call({ method: 'POST', path: `${path}/${segment(id)}/update`, query: { version }, body: spec, signal })
        return { kind: 'updated' }
      } catch (error) {
        const failure = failureOf(error)
        if (saysStale(failure)) return { kind: 'stale' }
        if (saysAbsent(failure)) return { kind: 'absent' }
        return failure.kind === 'answer' && failure.status < 500
          ? { kind: 'rejected', why: failure.text }
          : { kind: 'uncertain', error: failure.text }
      }
    },
    async remove(id, { signal }) {
      try {
        await engine.call({ method: 'DELETE', path: `${path}/${segment(id)}`, signal })
        return { kind: 'accepted', requestId: null }
      } catch (error) {
        const failure = failureOf(error)
        if (saysAbsent(failure)) return { kind: 'gone', requestId: null }
        if (saysInUse(failure)) return { kind: 'blocked', by: failure.text }
        if (saysDraining(failure)) return { kind: 'retryLater', why: failure.text, afterSeconds: null }
        if (failure.kind === 'answer' && [401, 403].includes(failure.status)) return { kind: 'denied', permission: failure.text }
        return { kind: 'unknown', error: failure.text }
      }
    },
  }
}
