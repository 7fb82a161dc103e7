/** Calls of children that read all rows of a statement, or store rows as they come. */
import {
  type InsertBatch,
  type Insertion,
  MOST_REFUSED,
  type RefusedRow,
  RowsRefused,
  type Scan,
} from '../../../databases/engine.ts';
import type { CallHead, CallOptions, ChildAnswer } from '../tenant-child.ts';

type Call = (head: CallHead, options: CallOptions) => Promise<ChildAnswer>;

/** See Engine.scan(). */
export async function scanBy(call: Call, { onRows, signal, ...query }: Scan): Promise<void> {
  const onPart = ({ body }: ChildAnswer) => onRows(JSON.parse(body.toString()));
  await call({ ...query, kind: 'scan' }, { signal, onPart });
}

/** See Engine.insert(). `batchOf`: a batch as the children take it, as JSON. */
export async function insertBy(
  call: Call,
  { first, batches, signal }: Insertion,
  batchOf: (batch: InsertBatch) => unknown,
): Promise<void> {
  const all = batches[Symbol.asyncIterator]();
  const onPart = async () => {
    const next = await all.next();
    return next.done === true ? undefined : Buffer.from(JSON.stringify(batchOf(next.value)));
  };
  const { head } = await call({ kind: 'insert', first, most: MOST_REFUSED }, { signal, onPart });
  const refused = head.refused as readonly RefusedRow[];
  if (refused.length > 0) throw new RowsRefused(refused);
}
