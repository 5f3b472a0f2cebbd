/**
 * Numbered migrations, plain SQL that both databases take. `expand` adds and lets older binaries go on; `contract` takes
 * away and raises the oldest binary allowed (decisions 7).
 */
import { first } from './0001-first.ts'
import { sweeps } from './0002-sweeps.ts'
import { coverage } from './0003-coverage.ts'
import { seal } from './0004-seal.ts'
import { plans } from './0005-plans.ts'
import { findings } from './0006-findings.ts'
import { installation } from './0007-installation.ts'
import { groups } from './0008-groups.ts'
import { fair } from './0009-fair.ts'
import { continued } from './0010-continued.ts'
import { budgets } from './0011-budgets.ts'
import { retention } from './0012-retention.ts'
import { fleets } from './0013-fleets.ts'
import { speed } from './0014-speed.ts'
import { controllers } from './0015-controllers.ts'

export interface Migration {
  number: number
  name: string
  mark: 'expand' | 'contract'
  statements: string[]
  /** What only PostgreSQL has: how it stores things, never what is in them. */
  postgresql?: string[]
}

export const migrations: readonly Migration[] = [
  first,
  sweeps,
  coverage,
  seal,
  plans,
  findings,
  installation,
  groups,
  fair,
  continued,
  budgets,
  retention,
  fleets,
  speed,
  controllers,
]
