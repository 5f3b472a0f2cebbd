import type { InstallationId } from '../model/ids.ts'
import type { Provider } from '../providers/contract.ts'
import { createDockerProvider } from '../providers/docker/index.ts'
import { createProcessProvider } from '../providers/process/index.ts'
import { createSimulatedProvider } from '../providers/simulated/index.ts'

/** Every provider of this program; their names are those of `support/provider-names.ts`. The installation tells ours from what others made here (case B1). */
export const createProviders = (dataFolder: string, installation: InstallationId): Provider[] => [
  createProcessProvider({ dataFolder, installation }),
  createDockerProvider({ installation }),
  createSimulatedProvider({ dataFolder }),
]
