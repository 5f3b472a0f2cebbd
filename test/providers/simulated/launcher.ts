/** One of several processes on one account: launches so many resources, and one machine that all of them ask for. */
import { openCloud } from '../../../src/providers/simulated/cloud.ts'

const [path = '', name = '', count = '0'] = process.argv.slice(2)
const cloud = openCloud(path)
const launch = (token: string | null) => cloud.launch([{ kind: 'machine', location: 'sim-a', name, tags: {}, token }])
const { repeated } = launch('shared')
// Whoever made it has launched one already.
for (let made = repeated ? 0 : 1; made < Number(count); made += 1) launch(null)
cloud.close()
