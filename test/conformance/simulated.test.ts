import { providerConformance } from './suite.ts'
import { simulatedWorld } from '../providers/simulated/support.ts'

const traits = { tagsCanHide: true, versions: true, wipes: true }

providerConformance('simulated, whole groups,', () => simulatedWorld({ pageSize: 3 }), traits)
providerConformance('simulated, machines alone,', () => simulatedWorld({ group: 'machine', pageSize: 2 }), traits)
providerConformance(
  'simulated, slow to delete and listed after the end,',
  () => simulatedWorld({ deleteSeconds: 40, terminatedSeconds: 3600, pageSize: 4 }),
  traits,
)
