/** The schemas and the types of `model/wire.ts` say the same. The type checker holds the first test; the second holds that the checker was given the right things. */
import { Compile } from 'typebox/compile'
import type { Static, TSchema } from 'typebox'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { Cleanup, Lease, type Access } from '../../src/api/schemas/leases.ts'
import type {
  Attempt,
  Audit,
  Backend,
  Fleet,
  Check,
  ErrorAnswer,
  Event,
  Finding,
  Freeze,
  Hold,
  Instance,
  Project,
  Status,
  Target,
  Token,
} from '../../src/api/schemas/views.ts'
import type { Plan } from '../../src/api/schemas/plans.ts'
import type { Removal } from '../../src/api/schemas/removals.ts'
import type { Explanation, HeldBack, Sweep, SweepCell, SweepOrphan } from '../../src/api/schemas/sweeps.ts'
import type {
  AuditRecord,
  AuditVerification,
  Receipt,
  ReceiptRecord,
  ReceiptRemoval,
  ReceiptResource,
} from '../../src/api/schemas/audit.ts'
import type * as wire from '../../src/model/wire.ts'
import type * as wireRemovals from '../../src/model/wire-removals.ts'
import type * as wireAudit from '../../src/model/wire-audit.ts'
import { leaseViews } from '../../src/engine/views.ts'
import { benchForAll } from './support.ts'

describe('the schemas of the API', () => {
  test('are assignable to the wire types and back', () => {
    expectTypeOf<Static<typeof Lease>>().branded.toEqualTypeOf<wire.LeaseView>()
    expectTypeOf<Static<typeof Cleanup>>().branded.toEqualTypeOf<wire.CleanupView>()
    expectTypeOf<Static<typeof Instance>>().branded.toEqualTypeOf<wire.InstanceView>()
    expectTypeOf<Static<typeof Attempt>>().branded.toEqualTypeOf<wire.AttemptView>()
    expectTypeOf<Static<typeof Event>>().branded.toEqualTypeOf<wire.EventView>()
    expectTypeOf<Static<typeof Target>>().branded.toEqualTypeOf<wire.EventTarget>()
    expectTypeOf<Static<typeof Finding>>().branded.toEqualTypeOf<wire.FindingView>()
    expectTypeOf<Static<typeof Token>>().branded.toEqualTypeOf<wire.TokenView>()
    expectTypeOf<Static<typeof Project>>().branded.toEqualTypeOf<wire.ProjectView>()
    expectTypeOf<Static<typeof Fleet>>().branded.toEqualTypeOf<wire.FleetView>()
    expectTypeOf<Static<typeof Backend>>().branded.toEqualTypeOf<wire.BackendView>()
    expectTypeOf<Static<typeof Hold>>().branded.toEqualTypeOf<wire.HoldView>()
    expectTypeOf<Static<typeof Freeze>>().branded.toEqualTypeOf<wire.FreezeView>()
    expectTypeOf<Static<typeof Audit>>().branded.toEqualTypeOf<wire.AuditRow>()
    expectTypeOf<Static<typeof Status>>().branded.toEqualTypeOf<wire.StatusView>()
    expectTypeOf<Static<typeof Check>>().branded.toEqualTypeOf<wire.DoctorCheck>()
    expectTypeOf<Static<typeof Access>>().branded.toEqualTypeOf<wire.Access>()
    expectTypeOf<Static<typeof Removal>>().branded.toEqualTypeOf<wireRemovals.RemovalView>()
    expectTypeOf<Static<typeof Plan>>().branded.toEqualTypeOf<wire.PlanView>()
    expectTypeOf<Static<typeof Sweep>>().branded.toEqualTypeOf<wire.SweepView>()
    expectTypeOf<Static<typeof SweepCell>>().branded.toEqualTypeOf<wire.SweepCellView>()
    expectTypeOf<Static<typeof SweepOrphan>>().branded.toEqualTypeOf<wire.SweepOrphanView>()
    expectTypeOf<Static<typeof HeldBack>>().branded.toEqualTypeOf<wire.HeldBackView>()
    expectTypeOf<Static<typeof Explanation>['heldBack']>().branded.toEqualTypeOf<wire.ExplanationView['heldBack']>()
    expectTypeOf<keyof Static<typeof Explanation>>().toEqualTypeOf<keyof wire.ExplanationView>()
    expectTypeOf<Static<typeof AuditRecord>>().branded.toEqualTypeOf<wireAudit.AuditRecordView>()
    expectTypeOf<Static<typeof AuditVerification>>().branded.toEqualTypeOf<wireAudit.AuditVerificationView>()
    expectTypeOf<Static<typeof ReceiptRecord>>().branded.toEqualTypeOf<wireAudit.ReceiptRecordView>()
    expectTypeOf<Static<typeof ReceiptResource>>().branded.toEqualTypeOf<wireAudit.ReceiptResourceView>()
    expectTypeOf<Static<typeof ReceiptRemoval>>().branded.toEqualTypeOf<wireAudit.ReceiptRemovalView>()
    expectTypeOf<Static<typeof Receipt>>().branded.toEqualTypeOf<wireAudit.ReceiptView>()
    expectTypeOf<Static<typeof ErrorAnswer>>().branded.toEqualTypeOf<wire.ErrorAnswer>()
    expect(Object.keys(Cleanup.properties)).toContain('stuck')
  })

  const bench = benchForAll({ start: false })
  test('accept what the engine renders, and refuse it with a field more, a field less or of another type', async () => {
    const { body } = await bench().call('POST', '/v1/leases', {}, { headers: { prefer: 'respond-async' } })
    const rows = await bench().store.read((session) => session.db.selectFrom('leases').selectAll().execute())
    const [view] = await bench().store.read((session) => leaseViews(session, rows))
    expect(view).toEqual(body['lease'])
    const schema = Compile(Lease as TSchema)
    expect(schema.Check(view)).toBe(true)
    expect(schema.Check({ ...view, secret: 'x' })).toBe(false)
    expect(schema.Check({ ...view, createdAt: 5 })).toBe(false)
    for (const field of Object.keys(view ?? {}))
      expect(schema.Check(Object.fromEntries(Object.entries(view ?? {}).filter(([key]) => key !== field))), field).toBe(false)
  })
})
