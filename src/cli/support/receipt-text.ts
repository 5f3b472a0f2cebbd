/** A receipt as lines for people. Times are the coordinator's, as they were recorded. */
import { counted } from '../../lib/counted.ts'
import type { ReceiptCallView, ReceiptFoundView, ReceiptRecordView, ReceiptRemovalView, ReceiptView } from '../../model/wire-audit.ts'

const indented = (lines: readonly string[], by = '  '): string[] => lines.map((line) => `${by}${line}`)

const sealText = (record: ReceiptRecordView): string => {
  switch (record.chain) {
    case 'unsealed':
      return `[${record.id}: not sealed yet]`
    case 'verified':
      return `[audit ${record.seq}, ${record.hash?.slice(0, 16)}…: holds]`
    case 'cut':
      return `[audit ${record.seq}, ${record.id}: THE RECORD BEFORE IT IS MISSING]`
    case 'broken':
      return `[audit ${record.seq}, ${record.id}: DOES NOT HOLD]`
  }
}

const foundLines = (found: ReceiptFoundView): string[] => [
  `found by sweep ${found.sweepID}, listed at ${found.listedAt}`,
  ...indented([
    `verdict: ${found.reason}: ${found.reasonText}`,
    `finding ${found.findingID ?? 'not recorded'}: seen ${found.timesSeen} times unchanged, from ${found.firstSeenAt} to ${found.lastSeenAt}`,
    `fingerprint: ${found.fingerprint}`,
    `coverage: ${found.coverage.map((cell) => `${cell.location}/${cell.kind} ${cell.state} (${cell.resources})`).join(', ') || 'not recorded'}`,
    found.certificate === null
      ? 'certificate: not kept any more'
      : `certificate: ${found.certificate.outcome ?? 'no outcome'}, guard on counts ${found.certificate.guard ?? 'unknown'}`,
    found.planID === null ? 'plan: none' : `plan: ${found.planID} (${counted(found.planSize ?? 0, 'group')} begun)`,
    ...(found.planApproval === null
      ? []
      : [
          `approved by ${found.planApproval.approvedBy} at ${found.planApproval.approvedAt}: ${found.planApproval.reason ?? 'no reason given'}; the plan was made by ${found.planApproval.madeBy}`,
        ]),
    ...found.proofs.map((proof) => `ours: ${proof.resource}: ${proof.text} (${proof.attemptID})`),
    ...found.facts.map((fact) => `fact: ${fact.fact} (${fact.source}${fact.at === null ? '' : `, ${fact.at}`})`),
  ]),
]

const readText = (call: ReceiptCallView): string => {
  const tags = call.readTags
  const said =
    tags === null ? '' : `, tags ref ${tags.ref ?? 'none'}, installation ${tags.installation ?? 'none'}, attempt ${tags.attempt ?? 'none'}`
  return `read just before: ${call.readState ?? 'not recorded'}${said}`
}

const callLines = (call: ReceiptCallView, number: number): string[] => {
  const { resource, answer } = call
  const id = answer?.requestID === null || answer === null ? '' : `, request ${answer.requestID}`
  return [
    `call ${number}: ${resource.kind} ${resource.nativeID} in ${resource.location}, identity ${resource.immutableID}`,
    ...indented([
      `${call.at}  intent, fence ${call.fence ?? 'not recorded'} ${sealText(call.intent)}`,
      readText(call),
      answer === null
        ? 'its answer was never recorded'
        : `${answer.at}  answered ${answer.kind}${answer.detail === null ? '' : `: ${answer.detail}`}${id} ${sealText(answer.record)}`,
    ]),
  ]
}

const removalLines = (one: ReceiptRemovalView): string[] => [
  `removal ${one.removalID}: ${one.summary}`,
  ...indented([
    `of ${one.name} (${one.instanceID}, ref ${one.ref})${one.leaseID === null ? '' : `, lease ${one.leaseID}`}, attempt ${one.attemptNumber ?? 'unknown'} (${one.attemptID})`,
    `at ${one.project}/${one.backend} (${one.provider}), account ${one.scope}, ${one.location}`,
    `ordered ${one.orderedAt} by ${one.orderedBy ?? 'nobody that was recorded'}: ${one.cause}${one.causeText === '' ? '' : `, ${one.causeText}`}`,
    ...(one.resources.length === 0 ? ['no identity was ever bound'] : []),
    ...one.resources.map(
      (resource) => `bound: ${resource.kind} ${resource.nativeID} in ${resource.location}, identity ${resource.immutableID}`,
    ),
    ...(one.found === null ? [] : foundLines(one.found)),
    ...(one.calls.length === 0
      ? [one.verdict === 'unknown' ? 'no call is recorded' : 'no call was made']
      : one.calls.flatMap((call, i) => callLines(call, i + 1))),
    ...one.proofs.map(
      (proof) => `${proof.at}  proved absent: ${proof.resource.kind} ${proof.resource.nativeID}: ${proof.proof} ${sealText(proof.record)}`,
    ),
    ...one.missing.map((point) => `MISSING: ${point}`),
    ...one.open.map((point) => `open: ${point}`),
  ]),
]

export const receiptText = (receipt: ReceiptView): string[] => [
  // Of one removal alone its own line says it.
  receipt.removals.length === 1 ? receipt.subject : `${receipt.subject}: ${receipt.summary}`,
  ...receipt.removals.flatMap((one) => ['', ...removalLines(one)]),
]
