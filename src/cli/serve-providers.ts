import type { Provider } from '../providers/contract.ts'
import { createProcessProvider } from '../providers/process/index.ts'
import { createSimulatedProvider } from '../providers/simulated/index.ts'

/** Every provider of this program; their names are those of `support/provider-names.ts`. */
export const createProviders = (dataFolder: string): Provider[] => [
  createProcessProvider({ dataFolder }),
  createSimulatedProvider({ dataFolder }),
]
