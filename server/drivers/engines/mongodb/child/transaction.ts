/** Our own transaction on a tenant's documents: reads of one snapshot, or writes, all or none. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Binary, type Document, Long } from 'bson';
import { CommandError, waits } from '../../../../../libs/mongo/index.ts';
import { systemClock } from '../../../../platform/clock.ts';
import type { TenantDocuments } from './tenant-documents.ts';

/** Unlike a driver's transaction, ours may last as long as its caller waits. */
const TRANSACTION_MS = 60 * 60_000;
/** How long a write waits for another transaction. */
const WRITER_WAIT_MS = 5000;
const WAIT_STEP_MS = 20;
const WRITE_CONFLICT = 112;
let sessions = 0;

export class DocumentsTransaction {
  readonly #tenant: TenantDocuments;
  readonly #readOnly: boolean;
  readonly #lsid: Document;
  #hasBegun = false;

  constructor(tenant: TenantDocuments, { readOnly }: { readOnly: boolean }) {
    this.#tenant = tenant;
    this.#readOnly = readOnly;
    this.#lsid = { id: new Binary(Buffer.from(`cloudlet ${++sessions}`)) };
  }

  /**
   * Runs a command. The first command also waits until no other transaction writes. Throws CommandError if
   * the reply is a failure, but not for `writeErrors`; both end the transaction.
   */
  async run(command: Document): Promise<Document> {
    const isFirst = !this.#hasBegun;
    const until = systemClock.monotonic() + WRITER_WAIT_MS;
    for (;;) {
      const reply = this.#send({ ...command, ...(isFirst ? { startTransaction: true } : {}) });
      if (reply.ok === 1) {
        this.#hasBegun = true;
        return reply;
      }
      const isTaken = isFirst && (reply.code === WRITE_CONFLICT || waits.has(reply));
      if (!isTaken || systemClock.monotonic() > until)
        throw new CommandError(Number(reply.code), String(reply.errmsg));
      this.#number++;
      await sleep(WAIT_STEP_MS);
    }
  }

  #number = 1;

  #send(command: Document): Document {
    const { name: $db } = this.#tenant;
    const part = { lsid: this.#lsid, txnNumber: Long.fromNumber(this.#number), autocommit: false };
    return this.#tenant.run(
      { ...command, ...part, $db },
      { readOnly: this.#readOnly, transactionMs: TRANSACTION_MS },
    );
  }

  /** Throws CommandError. */
  commit(): void {
    const reply = this.#send({ commitTransaction: 1 });
    if (reply.ok !== 1) throw new CommandError(Number(reply.code), String(reply.errmsg));
  }

  /** Rolls it back, if it has not ended. */
  abort(): void {
    this.#send({ abortTransaction: 1 });
  }
}
