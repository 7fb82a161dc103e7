/** What is in a database: its collections and their indexes. */
import { setImmediate as turn } from 'node:timers/promises';
import type { Document } from 'bson';
import type { Table } from '../../../databases/engine.ts';
import type { Handler } from '../../engine-children/child-call.ts';
import { describeCollection } from '../query-results.ts';
import { decodeDocument } from '../values/bson-documents.ts';
import type { TenantDocuments } from './tenant-documents.ts';

const CONTEXT = { readOnly: true };
const ALL = { batchSize: 100_000 };

/** The answer's body is JSON: a list of Table. */
export function tablesHandler(tenant: TenantDocuments): Handler {
  const ask = (command: Document) => tenant.run({ ...command, $db: tenant.name }, CONTEXT);
  const list = (command: Document): Document[] =>
    (ask({ ...command, cursor: ALL }).cursor?.firstBatch ?? []).map((found: Uint8Array | Document) =>
      found instanceof Uint8Array ? decodeDocument(found) : found,
    );
  return async ({ signal }) => {
    const tables: Table[] = [];
    for (const { name } of list({ listCollections: 1 })) {
      const indexes = list({ listIndexes: name });
      tables.push(describeCollection(String(name), indexes, ask({ collStats: name })));
      await turn();
      signal.throwIfAborted();
    }
    tables.sort((one, other) => (one.name < other.name ? -1 : 1));
    return { head: {}, body: Buffer.from(JSON.stringify(tables)) };
  };
}
