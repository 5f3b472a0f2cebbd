/**
 * Gathers calls that are made close together into one batch: while a batch runs, the next one fills. Under load the batches
 * grow by themselves; a lone call waits for nothing.
 */
interface Waiting<In, Out> {
  item: In
  resolve: (value: Out) => void
  reject: (error: unknown) => void
}

export interface CoalesceOptions {
  /** At most so many in one batch. */
  largest: number
  /** At most so many batches at once (default 1). */
  concurrent?: number
  /** Under load (the batch before held several) the next one is let fill for so long, in ms; default 0: it goes at once. */
  gatherMs?: number
}

/**
 * @param run takes a batch and answers in the same order. When it throws, the items are tried one by one, so that a bad one fails alone.
 * @returns the call to make per item
 */
export const coalesce = <In, Out>(run: (items: In[]) => Promise<Out[]>, options: CoalesceOptions): ((item: In) => Promise<Out>) => {
  let queue: Waiting<In, Out>[] = []
  let running = 0
  let scheduled = false
  let crowded = false

  const alone = async (waiting: Waiting<In, Out>): Promise<void> => {
    try {
      waiting.resolve((await run([waiting.item]))[0] as Out)
    } catch (error) {
      waiting.reject(error)
    }
  }
  const flush = async (): Promise<void> => {
    scheduled = false
    if (queue.length === 0) return
    const batch = queue.slice(0, options.largest)
    queue = queue.slice(options.largest)
    crowded = batch.length > 2
    running++
    schedule()
    try {
      const answers = await run(batch.map((waiting) => waiting.item))
      batch.forEach((waiting, i) => waiting.resolve(answers[i] as Out))
    } catch (error) {
      if (batch.length === 1) batch[0]?.reject(error)
      else for (const waiting of batch) await alone(waiting)
    }
    running--
    schedule()
  }
  const schedule = (): void => {
    if (scheduled || queue.length === 0 || running >= (options.concurrent ?? 1)) return
    scheduled = true
    if (crowded && options.gatherMs !== undefined && queue.length < options.largest) setTimeout(() => void flush(), options.gatherMs)
    else setImmediate(() => void flush())
  }
  return (item) =>
    new Promise((resolve, reject) => {
      queue.push({ item, resolve, reject })
      schedule()
    })
}
