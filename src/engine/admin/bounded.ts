/** Works on many items, `width` at a time; answers in their order. */
export const eachBounded = async <In, Out>(items: readonly In[], width: number, work: (item: In) => Promise<Out>): Promise<Out[]> => {
  const answers: Out[] = []
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const at = next++
      answers[at] = await work(items[at] as In)
    }
  }
  await Promise.all(Array.from({ length: Math.min(width, items.length) }, worker))
  return answers
}
