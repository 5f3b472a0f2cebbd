/** `leasehold receipt ID`: the evidence that a deletion stood on, and where each record of it stands in the audit's chain. */
import type { Command } from 'commander'
import type { ReceiptView } from '../model/wire-audit.ts'
import { act, type Cli } from './support/cli.ts'
import { CliError } from './support/errors.ts'
import { segment } from './support/http.ts'
import { examples, withConnection, withJson } from './support/options.ts'
import { receiptText } from './support/receipt-text.ts'
import { printable } from './support/text.ts'

export const define = (command: Command, cli: Cli): void => {
  command.argument('<id>', 'a removal, a lease by id or slug, an instance, an attempt, a ref, a finding, or provider/location/native-id')
  withJson(withConnection(command))
  examples(command, 'receipt brave-otter', 'receipt rm_0190f3c2a1b47d4c8e5f60718293a4b5 --json', 'receipt simulated/sim-a/i-3f9c2a51')
  act(command, async (flags, key = '') => {
    const { client } = await cli.session(flags)
    const { receipt } = await client.get<{ receipt: ReceiptView }>(`/v1/receipts/${segment(key)}`)
    cli.show(flags, receipt, (one) =>
      receiptText(one)
        .map((line) => `${printable(line)}\n`)
        .join(''),
    )
    if (!receipt.whole)
      throw new CliError(
        'this receipt proves nothing: audit records are missing, or were changed; "leasehold audit verify" shows where the chain breaks',
      )
  })
}
