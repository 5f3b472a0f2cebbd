/** What the suites of explanations share: worlds that end with their test, and questions that are held to what every answer promises. */
import { afterEach, expect } from 'vitest'
import { explainKey } from '../../../src/engine/explain/index.ts'
import type { Engine } from '../../../src/engine/engine.ts'
import type { ExplanationNodeView, ExplanationView } from '../../../src/model/wire.ts'
import { root } from '../../support/engine.ts'
import type { OpenStore } from '../../support/stores.ts'
import { sweepWorld, type SweepWorld } from '../../support/sweep-world.ts'

const never = new AbortController().signal
export const nodesOf = (node: ExplanationNodeView): ExplanationNodeView[] => [node, ...node.children.flatMap(nodesOf)]
export const facts = (view: ExplanationView): string =>
  nodesOf(view.tree)
    .map((node) => node.fact)
    .join('\n')

export const explaining = (open: OpenStore) => {
  const engines: Engine[] = []
  afterEach(async () => {
    for (const engine of engines.splice(0)) await engine.stop(0)
  })
  return {
    world: async (options: Parameters<typeof sweepWorld>[1] = {}): Promise<SweepWorld> => {
      const made = await sweepWorld(await open(), options)
      engines.push(made.engine)
      return made
    },
    /** Holds whatever is asked to the promise that each fact has a source and an age. */
    ask: async (w: SweepWorld, key: string, who = root): Promise<ExplanationView> => {
      const view = await explainKey(w.engine.context, who, key, never)
      for (const node of nodesOf(view.tree)) {
        expect(node.source, node.fact).not.toBe('')
        expect(node.at, node.fact).toMatch(/^\d{4}-.*Z$/)
      }
      expect(view.key).toBe(key)
      expect(view.change).not.toBe('')
      return view
    },
    refused: async (w: SweepWorld, key: string, who = root) =>
      expect(explainKey(w.engine.context, who, key, never)).rejects.toMatchObject({ code: 'not_found' }),
  }
}
