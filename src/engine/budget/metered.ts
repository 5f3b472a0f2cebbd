/**
 * Every call of the engine to a provider goes through here: it is counted to its account's budget, what its answer says of the rate is learned, and a read
 * that was refused for its rate waits rather than fails.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { OperationClass } from '../../model/budget.ts'
import type { ListingItem, Provider, Rated } from '../../providers/contract.ts'
import { measured, type Meter } from '../meter.ts'
import type { Account, Budgets } from './budgets.ts'
import { WaitsForBudget } from './waits.ts'

/** A listing under way is slowed down page by page rather than begun anew; its worker goes on renewing its lock. */
const longestPaceMs = 5_000

type Config = Record<string, unknown>

/** What an answer counts as in the metrics. */
const outcomeOf = (answer: unknown): string => {
  const { kind, rate } = (answer ?? {}) as { kind?: string } & Rated
  return rate?.throttled === true ? 'throttled' : (kind ?? 'done')
}

/** A listing is metered by what it yields: pages, and how complete each of its cells was. */
const pageOutcome = ({ done, value }: IteratorResult<ListingItem>): string =>
  done === true ? 'done' : value.type === 'coverage' ? value.coverage.state.kind : value.type

export const metered = (provider: Provider, budgets: Budgets, meter: Meter): Provider => {
  /** The account behind a configuration, once it was read; what is asked before counts for none. */
  const scopes = new Map<string, string>()
  const behind = (config: Config): Account | null => {
    const scope = scopes.get(JSON.stringify(config))
    return scope === undefined ? null : { provider: provider.name, scope }
  }
  const inScope = (scope: string): Account => ({ provider: provider.name, scope })

  const hear = async (account: Account | null, operation: OperationClass, answer: Rated | undefined): Promise<number | null> =>
    account === null || answer?.rate === undefined ? null : budgets.heard(account, operation, answer.rate)

  /** @throws WaitsForBudget */
  const call = async <T>(account: Account | null, operation: OperationClass, name: string, work: () => Promise<T>): Promise<T> => {
    if (account !== null) budgets.charge(account, operation)
    return measured((outcome, seconds) => meter.called(provider.name, name, outcome, seconds), outcomeOf, work)
  }
  /** What was refused for its rate says nothing, so nothing may be made of it. */
  const ask = async <T extends Rated>(account: Account | null, name: string, work: () => Promise<T>): Promise<T> => {
    const answer = await call(account, 'read', name, work)
    const until = await hear(account, 'read', answer)
    if (answer.rate?.throttled === true && until !== null) throw new WaitsForBudget(until)
    return answer
  }
  /** Its answer is on record, whatever it is. */
  const change = async <T extends Rated>(
    account: Account | null,
    operation: OperationClass,
    name: string,
    work: () => Promise<T>,
  ): Promise<T> => {
    const answer = await call(account, operation, name, work)
    await hear(account, operation, answer)
    return answer
  }

  async function* paced(list: NonNullable<Provider['list']>, ...given: Parameters<typeof list>): AsyncGenerator<ListingItem> {
    const [, config, { signal }] = given
    const account = behind(config)
    if (account !== null) budgets.charge(account, 'read')
    const pages = list(...given)[Symbol.asyncIterator]()
    const next = () =>
      measured<IteratorResult<ListingItem>>(
        (outcome, seconds) => meter.called(provider.name, 'list', outcome, seconds),
        pageOutcome,
        () => pages.next(),
      )
    try {
      for (let one = await next(); one.done !== true; one = await next()) {
        const item = one.value
        yield item
        if (account === null) continue
        if (item.type === 'coverage') await hear(account, 'read', item.coverage)
        if (item.type !== 'page') continue
        const ahead = await budgets.pace(account, 'read')
        if (ahead > 0) await pause(Math.min(longestPaceMs, ahead), undefined, { signal })
      }
    } finally {
      await pages.return?.(undefined)
    }
  }

  const counted: Partial<Provider> = {
    /** Which account it is comes before everything, creates too, and is asked about once a minute: it waits for no other call. */
    async scope(config, context) {
      const answer = await provider.scope(config, context)
      const until = await hear(behind(config), 'read', answer)
      if (answer.rate?.throttled === true && until !== null) throw new WaitsForBudget(until)
      if (answer.kind === 'known') scopes.set(JSON.stringify(config), answer.scope)
      return answer
    },
    create: (request, ...rest) => change(behind(request.config), 'create', 'create', () => provider.create(request, ...rest)),
    // Whatever else is given is handed on: without its precondition a deletion would take what changed since its fresh read (leases R91).
    find: (ref, config, ...rest) => ask(behind(config), 'find', () => provider.find(ref, config, ...rest)),
    read: (resource, ...rest) => ask(inScope(resource.scope), 'read', () => provider.read(resource, ...rest)),
    remove: (resource, ...rest) => change(inScope(resource.scope), 'delete', 'remove', () => provider.remove(resource, ...rest)),
    doctor: (config, ...rest) => call(behind(config), 'read', 'doctor', () => provider.doctor(config, ...rest)),
  }
  /** Only where the provider has it, and as it has it now. */
  const optional = {
    inspect:
      (inspect): NonNullable<Provider['inspect']> =>
      (group, config, ...rest) =>
        ask(behind(config), 'inspect', () => inspect(group, config, ...rest)),
    list:
      (list): NonNullable<Provider['list']> =>
      (...given) =>
        paced(list, ...given),
    mayList:
      (mayList): NonNullable<Provider['mayList']> =>
      (location, kind, config, ...rest) =>
        call(behind(config), 'read', 'mayList', () => mayList(location, kind, config, ...rest)),
    rearm:
      (rearm): NonNullable<Provider['rearm']> =>
      (resource, ...rest) =>
        call(inScope(resource.scope), 'read', 'rearm', () => rearm(resource, ...rest)),
    refreshAccess:
      (refresh): NonNullable<Provider['refreshAccess']> =>
      (resource, ...rest) =>
        call(inScope(resource.scope), 'read', 'refreshAccess', () => refresh(resource, ...rest)),
  } satisfies { [Name in 'inspect' | 'list' | 'mayList' | 'rearm' | 'refreshAccess']: (own: NonNullable<Provider[Name]>) => Provider[Name] }

  return new Proxy(provider, {
    get(target, key) {
      const own = Reflect.get(target, key, target) as unknown
      if (Object.hasOwn(counted, key)) return counted[key as keyof Provider]
      if (typeof own !== 'function') return own
      const bound = own.bind(target) as never
      return Object.hasOwn(optional, key) ? optional[key as keyof typeof optional](bound) : bound
    },
  })
}
