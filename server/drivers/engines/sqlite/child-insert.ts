/** Stores rows that arrive piece after piece, in one transaction. */
import type { DatabaseSync } from 'node:sqlite';
import { setImmediate as turn } from 'node:timers/promises';
import { sqliteErrorName } from '../../../../libs/sqlite/index.ts';
import { systemClock } from '../../../platform/clock.ts';
import { type ChildCall, type Handler, TURN_MS } from '../../engine-children/child-call.ts';
import { bound, prepare, whenFree } from './child-query.ts';
import type { TenantConnections } from './tenant-connections.ts';

/** One statement, and its values for each row. */
interface Batch {
  readonly statement: string;
  readonly rows: readonly (readonly unknown[])[];
}

interface Refused {
  readonly at: number;
  readonly message: string;
}

/** Errors of a value, not of the file or the disk. */
const OF_A_ROW = /^SQLITE_(?:CONSTRAINT|MISMATCH|TOOBIG|ERROR)/;

/** Requests each batch by sending a part, whose answer is the batch; an empty one is the end. */
export function insertHandler(tenant: TenantConnections): Handler {
  return async (call) => {
    const { first, most } = call.head as unknown as { readonly first: string | null; readonly most: number };
    const database = tenant.openFor('own', false);
    try {
      await whenFree(call, async () => database.exec('BEGIN IMMEDIATE'));
      if (first !== null) prepare(database, first).run();
      let before = 0;
      for (let body = await call.part({}); body.length > 0; body = await call.part({})) {
        tenant.heedHost();
        const batch = JSON.parse(Buffer.from(body).toString()) as Batch;
        const refused = await insertAll(database, batch, { before, most, signal: call.signal });
        if (refused.length > 0) return { head: { refused } };
        before += batch.rows.length;
      }
      database.exec('COMMIT');
      tenant.counters.statements += before;
      tenant.counters.rowsWritten += before;
      return { head: { refused: [] } };
    } finally {
      // Rolls back what has failed.
      tenant.close(database);
    }
  };
}

interface How extends Pick<ChildCall, 'signal'> {
  readonly before: number;
  readonly most: number;
}

async function insertAll(
  database: DatabaseSync,
  { statement: sql, rows }: Batch,
  { before, most, signal }: How,
) {
  const statement = prepare(database, sql);
  const refused: Refused[] = [];
  let since = systemClock.monotonic();
  for (const [at, params] of rows.entries()) {
    try {
      statement.run(...params.map(bound));
    } catch (error) {
      if (!OF_A_ROW.test(sqliteErrorName(error) ?? '')) throw error;
      refused.push({ at: before + at, message: (error as Error).message });
      if (refused.length === most) return refused;
    }
    if (systemClock.monotonic() - since < TURN_MS) continue;
    await turn();
    signal.throwIfAborted();
    since = systemClock.monotonic();
  }
  return refused;
}
