/** The audit, whether its chain is whole, and the receipt of a deletion. */
import { Type } from 'typebox'
import { readAudit, verifyAudit } from '../../engine/admin/index.ts'
import { readReceipt } from '../../engine/receipt/index.ts'
import { answers, untilGone, type Api, type Wiring } from '../app.ts'
import { AuditRecord, auditQuery, AuditVerification, defaultVerifyLimit, Receipt, receiptKey, verifyQuery } from '../schemas/audit.ts'
import { answer, defaultLimit, nothing, ref } from '../schemas/kinds.ts'

const tags = ['audit']

export const auditRoutes = (app: Api, { context, closing }: Wiring): void => {
  app.get(
    '/v1/admin/audit',
    {
      schema: {
        operationId: 'listAudit',
        summary: 'List audit records, newest first',
        tags,
        querystring: auditQuery,
        response: answers({ 200: answer('Intents, outcomes, proofs, and what operators did.', { records: Type.Array(ref(AuditRecord)) }) }),
      },
    },
    async (request) => ({
      records: await readAudit(context, request.actor, { ...request.query, limit: request.query.limit ?? defaultLimit }),
    }),
  )

  app.get(
    '/v1/admin/audit/verify',
    {
      schema: {
        operationId: 'verifyAudit',
        summary: 'Verify the chain over the audit',
        description:
          'Works out every hash anew, up to `limit` records: unless `complete`, go on with `from` set to `to`. A chain that does not hold is an answer like any other: look at `ok`.',
        tags,
        querystring: verifyQuery,
        response: answers({ 200: answer('How far it holds.', { verification: ref(AuditVerification) }) }),
      },
    },
    async (request, reply) => ({
      verification: await verifyAudit(
        context,
        request.actor,
        { ...request.query, limit: request.query.limit ?? defaultVerifyLimit },
        untilGone(reply, closing),
      ),
    }),
  )

  app.get(
    '/v1/receipts/:key',
    {
      schema: {
        operationId: 'getReceipt',
        summary: 'The evidence that a deletion stood on',
        tags,
        params: receiptKey,
        querystring: nothing,
        response: answers({ 200: answer('The receipt.', { receipt: ref(Receipt) }) }),
      },
    },
    async (request) => ({ receipt: await readReceipt(context, request.actor, request.params.key) }),
  )
}
