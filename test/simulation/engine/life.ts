/**
 * The life of one engine, as a process has it: it may end between any two steps, and then no more of its calls reach the store or the provider, and none
 * that were under way come back to it; and it may stand still, and go on later as if nothing had been.
 */
import { sql } from 'kysely'
import type { Session, Store, Tx } from '../../../src/store/store.ts'
import type { Gate } from './database.ts'

const forever = new Promise<never>(() => {})

export class Life {
  #dead = false
  #stalled: { promise: Promise<void>; resolve: () => void } | null = null
  /** So many steps are left to it; null: nobody counts. */
  #fuse: { steps: number; burnt: 'dies' | 'stalls' } | null = null
  /** Provider calls that were begun and have not come back. */
  calls = 0
  steps = 0
  stalls = 0

  get dead(): boolean {
    return this.#dead
  }
  get stalled(): boolean {
    return this.#stalled !== null
  }

  light(steps: number, burnt: 'dies' | 'stalls'): void {
    this.#fuse = { steps, burnt }
  }
  kill(): void {
    this.#dead = true
    this.#fuse = null
  }
  stall(): void {
    this.#stalled ??= Promise.withResolvers<void>()
    this.stalls++
    this.#fuse = null
  }
  resume(): void {
    this.#fuse = null
    this.#stalled?.resolve()
    this.#stalled = null
  }

  /**
   * Between two steps: the place to die, or to stand still.
   * @param stallsHere false: whoever stood still here would show nothing
   */
  async step(stallsHere = true): Promise<void> {
    this.steps++
    if (this.#fuse !== null && (stallsHere || this.#fuse.burnt === 'dies') && --this.#fuse.steps < 0) {
      if (this.#fuse.burnt === 'dies') this.kill()
      else this.stall()
    }
    return this.pass()
  }
  /** A step right before a call to the outside: it may die here. Who stood still here could not know what had become of its lock. */
  async beforeCall(): Promise<void> {
    this.steps++
    if (this.#fuse?.burnt === 'dies' && --this.#fuse.steps < 0) this.kill()
    if (this.#dead) return forever
  }
  /** Goes on only while it lives. */
  async pass(): Promise<void> {
    while (this.#stalled !== null && !this.#dead) await this.#stalled.promise
    if (this.#dead) return forever
  }
  /** For what has reached the database already: a dead process commits nothing. */
  mustLive(): void {
    if (this.#dead) throw new Error('this process has died')
  }
}

/** The store as one engine has it. Every transaction says whose it is, for the triggers. */
export class MortalStore implements Store {
  readonly dialect: Store['dialect']
  readonly description: string
  readonly #store: Store
  readonly #life: Life
  readonly #gate: Gate
  /** Names the engine in locks. */
  who = 'starting'

  constructor(store: Store, life: Life, gate: Gate) {
    this.#gate = gate
    this.dialect = store.dialect
    this.description = store.description
    this.#store = store
    this.#life = life
  }

  async now(): Promise<number> {
    await this.#free()
    return this.#store.now()
  }

  /** Lives, and may read. */
  async #free(): Promise<void> {
    await this.#life.pass()
    for (let open = this.#gate.shut(); open !== undefined; open = this.#gate.shut()) await open
    await this.#life.pass()
  }

  async read<T>(body: (session: Session) => Promise<T>): Promise<T> {
    await this.#free()
    // Statement by statement, as others see it: between two of one body a transaction may come in.
    const value = await this.#store.read(body)
    await this.#life.pass()
    return value
  }

  async write<T>(body: (tx: Tx) => Promise<T>): Promise<T> {
    await this.#life.step(false)
    let entered = false
    const value = await this.#store
      .write(async (tx) => {
        entered = true
        this.#gate.entered()
        this.#life.mustLive()
        await sql`update world set who = ${this.who}`.execute(tx.db)
        return body(tx)
      })
      .finally(() => {
        if (entered) this.#gate.left()
      })
      .catch(async (error: unknown) => {
        await this.#life.pass()
        throw error
      })
    await this.#life.step()
    return value
  }

  async close(): Promise<void> {}
}
