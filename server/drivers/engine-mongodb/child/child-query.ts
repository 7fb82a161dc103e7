/** One command, for people who look into a database. */
import type { Document } from 'bson';
import type { Handler } from '../../engine-children/child-call.ts';
import { commandOf, resultOf } from '../query-results.ts';
import type { TenantDocuments } from './tenant-documents.ts';

/** The answer's body is JSON: a QueryResult. */
export function queryHandler(tenant: TenantDocuments): Handler {
  return async ({ head }) => {
    const { statement, readOnly, timeoutMs, ...bounds } = head as unknown as {
      readonly statement: Document;
      readonly readOnly: boolean;
      readonly timeoutMs: number;
      readonly maxRows: number;
      readonly maxBytes: number;
    };
    const command = commandOf(statement, bounds.maxRows);
    command.$db ??= tenant.name;
    const result = resultOf(command, tenant.run(command, { readOnly, withinMs: timeoutMs }), bounds);
    return { head: {}, body: Buffer.from(JSON.stringify(result)) };
  };
}
