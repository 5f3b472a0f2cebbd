import type { DoctorCheck } from '../../model/wire.ts'
import type { Cloud } from './cloud.ts'

export const checkCloud = (open: () => Cloud, path: string): DoctorCheck[] => {
  try {
    const cloud = open()
    const faults = cloud.faults()
    const account: DoctorCheck = {
      name: 'simulated: account',
      level: 'ok',
      message: `account ${cloud.account()} in ${path} holds ${cloud.all().length} resources`,
      remedy: null,
    }
    if (faults.length === 0) return [account]
    const list = faults.map((fault) => `${fault.operation} ${fault.effect}`).join(', ')
    const remedy = `"leasehold simulate fault clear --path ${path}" makes it honest again`
    return [account, { name: 'simulated: faults', level: 'warning', message: `the cloud is told to misbehave: ${list}`, remedy }]
  } catch (error) {
    return [
      {
        name: 'simulated: account',
        level: 'error',
        message: `${path} can't be used: ${error instanceof Error ? error.message : String(error)}`,
        remedy: 'let the user that runs the coordinator write it, or give the backend another path',
      },
    ]
  }
}
