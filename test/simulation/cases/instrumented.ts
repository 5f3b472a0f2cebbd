/** A provider whose answers a test can bend at an exact moment, and whose calls it can count. */
import type {
  CreateOutcome,
  CreateRequest,
  ListingItem,
  Provider,
  ReadOutcome,
  RemoveOutcome,
  ResourceIdentity,
} from '../../../src/providers/contract.ts'

export interface Call {
  op: 'create' | 'find' | 'read' | 'remove' | 'list'
  id: string
}

export interface Hooks {
  /** Instead of the cloud's answer, or before it (`real` makes what was asked for). */
  create?: ((request: CreateRequest, real: () => Promise<CreateOutcome>) => Promise<CreateOutcome>) | undefined
  /** After each page or coverage that the engine has taken, while the cloud is still being listed. */
  item?: ((item: ListingItem) => Promise<void> | void) | undefined
  /** What the cloud lists, before the engine sees any of it. */
  list?: ((items: ListingItem[]) => Promise<ListingItem[]> | ListingItem[]) | undefined
  read?: ((resource: ResourceIdentity, real: () => Promise<ReadOutcome>) => Promise<ReadOutcome>) | undefined
  remove?: ((resource: ResourceIdentity, real: () => Promise<RemoveOutcome>) => Promise<RemoveOutcome>) | undefined
}

export const instrument = (real: Provider, hooks: Hooks, calls: Call[]): Provider => {
  const methods: Pick<Provider, 'create' | 'find' | 'read' | 'remove' | 'list'> = {
    create(request, context) {
      calls.push({ op: 'create', id: request.ref })
      const make = (): Promise<CreateOutcome> => real.create(request, context)
      return hooks.create ? hooks.create(request, make) : make()
    },
    find(ref, config, context) {
      calls.push({ op: 'find', id: ref })
      return real.find(ref, config, context)
    },
    read(resource, config, context) {
      calls.push({ op: 'read', id: resource.nativeId })
      const read = (): Promise<ReadOutcome> => real.read(resource, config, context)
      return hooks.read ? hooks.read(resource, read) : read()
    },
    remove(resource, config, context, precondition) {
      calls.push({ op: 'remove', id: resource.nativeId })
      const remove = (): Promise<RemoveOutcome> => real.remove(resource, config, context, precondition)
      return hooks.remove ? hooks.remove(resource, remove) : remove()
    },
    async *list(locations, config, context) {
      calls.push({ op: 'list', id: locations.join() })
      const listing = real.list?.(locations, config, context) ?? []
      if (!hooks.list) {
        for await (const item of listing) {
          yield item
          await hooks.item?.(item)
        }
        return
      }
      const items: ListingItem[] = []
      for await (const item of listing) items.push(item)
      yield* await hooks.list(items)
    },
  }
  // On top of the real one, so that what it computes (how slow its backends are) stays its own.
  return Object.defineProperties(Object.create(real) as Provider, Object.getOwnPropertyDescriptors(methods))
}
