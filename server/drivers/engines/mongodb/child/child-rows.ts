/** Documents of a collection read as a whole, changed or stored, each in one transaction. */
import { setImmediate as turn } from 'node:timers/promises';
import type { Document } from 'bson';
import { CommandError, decodeCommand, decodeDocument } from '../../../../../libs/mongo/index.ts';
import { systemClock } from '../../../../platform/clock.ts';
import { type ChildCall, type Handler, TURN_MS } from '../../../engine-children/child-call.ts';
import { unlessHeldBack } from '../../../engine-children/rows/held-back.ts';
import { bsonOf, exactJson } from '../extended-json.ts';
import type { TenantDocuments } from './tenant-documents.ts';
import { DocumentsTransaction } from './transaction.ts';

interface Statement {
  readonly statement: Document;
}

/**
 * Commands that change one document each. If one did not, nothing is changed, and the head of the answer
 * has its `at` and `rows`.
 */
export function changeHandler(tenant: TenantDocuments): Handler {
  return async ({ head, signal }) => {
    const { statements } = head as unknown as { readonly statements: readonly Statement[] };
    const transaction = new DocumentsTransaction(tenant, { readOnly: false });
    try {
      let since = systemClock.monotonic();
      for (const [at, { statement }] of statements.entries()) {
        const reply = await transaction.run(decodeCommand(bsonOf(statement)));
        const [failed] = (reply.writeErrors ?? []) as Document[];
        if (failed !== undefined) throw new CommandError(Number(failed.code), String(failed.errmsg));
        if (reply.n !== 1) return { head: { at, rows: Number(reply.n) } };
        if (systemClock.monotonic() - since < TURN_MS) continue;
        await turn();
        signal.throwIfAborted();
        since = systemClock.monotonic();
      }
      transaction.commit();
      return { head: { at: null, rows: null } };
    } finally {
      transaction.abort();
    }
  };
}

/** Bytes of documents in one part of a scan. */
const PART_BYTES = 256 * 1024;
const BATCH = 100;
/**
 * The log grows while a snapshot is read, and no size limit counts it: the larger of this and the size of the
 * file is allowed.
 */
const LEAST_LOG_BYTES = 64 * 2 ** 20;

/**
 * The documents of one `find`, in parts that are lists as JSON. Fails when the log grows too much meanwhile.
 */
export function scanHandler(tenant: TenantDocuments, leastLogBytes = LEAST_LOG_BYTES): Handler {
  return async ({ head, signal, part }) => {
    const { statement } = head as unknown as Statement;
    const transaction = new DocumentsTransaction(tenant, { readOnly: true });
    const logBytes = Math.max(leastLogBytes, tenant.sizeBytes);
    let [rows, bytes]: [string[], number] = [[], 0];
    const send = async () => {
      await unlessHeldBack(tenant, logBytes, part({}, Buffer.from(`[${rows.join(',')}]`)));
      [rows, bytes] = [[], 0];
    };
    try {
      const command = decodeCommand(bsonOf(statement));
      let { cursor } = await transaction.run({ ...command, batchSize: BATCH });
      for (let page = cursor.firstBatch; page.length > 0; page = cursor.nextBatch) {
        for (const found of page as (Uint8Array | Document)[]) {
          const document = found instanceof Uint8Array ? decodeDocument(found) : found;
          const text = JSON.stringify(Object.values(document).map(exactJson));
          rows.push(text);
          bytes += text.length;
          if (bytes >= PART_BYTES) await send();
        }
        await turn();
        signal.throwIfAborted();
        if (cursor.id.isZero()) break;
        const more = { getMore: cursor.id, collection: command.find, batchSize: BATCH };
        ({ cursor } = await transaction.run(more));
      }
      if (rows.length > 0) await send();
      return { head: {} };
    } finally {
      transaction.abort();
    }
  };
}

interface Refused {
  readonly at: number;
  readonly message: string;
}

/**
 * Requests each batch (an `insert`) by sending a part, whose answer is the batch; an empty one is the end.
 */
export function insertHandler(tenant: TenantDocuments): Handler {
  return async (call) => {
    const { first, most } = call.head as unknown as {
      readonly first: Document | null;
      readonly most: number;
    };
    const transaction = new DocumentsTransaction(tenant, { readOnly: false });
    try {
      if (first !== null) await transaction.run(decodeCommand(bsonOf(first)));
      let before = 0;
      for (let body = await call.part({}); body.length > 0; body = await call.part({})) {
        const { insert, documents } = JSON.parse(Buffer.from(body).toString());
        const { encoded, refused } = encode(documents, before, most);
        if (refused.length > 0) return { head: { refused } };
        refused.push(...(await insertAll(transaction, { insert, encoded, before, most, call })));
        if (refused.length > 0) return { head: { refused } };
        before += encoded.length;
      }
      if (before > 0 || first !== null) transaction.commit();
      return { head: { refused: [] } };
    } finally {
      transaction.abort();
    }
  };
}

function encode(documents: readonly unknown[], before: number, most: number) {
  const [encoded, refused]: [Uint8Array[], Refused[]] = [[], []];
  for (const [index, document] of documents.entries()) {
    try {
      encoded.push(bsonOf(document));
    } catch (error) {
      if (refused.push({ at: before + index, message: (error as Error).message }) === most) break;
    }
  }
  return { encoded, refused };
}

interface Batch {
  readonly insert: string;
  readonly encoded: readonly Uint8Array[];
  readonly before: number;
  readonly most: number;
  readonly call: Pick<ChildCall, 'signal'>;
}

async function insertAll(
  transaction: DocumentsTransaction,
  { insert, encoded, before, most, call }: Batch,
): Promise<readonly Refused[]> {
  const reply = await transaction.run({ insert, documents: encoded, ordered: false });
  await turn();
  call.signal.throwIfAborted();
  const errors = (reply.writeErrors ?? []) as Document[];
  return errors
    .slice(0, most)
    .map(({ index, errmsg }) => ({ at: before + Number(index), message: String(errmsg) }));
}
