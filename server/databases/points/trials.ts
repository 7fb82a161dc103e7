/** Tests the databases of a restored cloud in a drill: loads, opens and removes one after another. */
import { isAppError } from '../../platform/errors.ts';
import type { DatabaseTrials } from '../../recovery/drill/rehearsal.ts';
import type { Refill } from '../creation/refill.ts';
import type { Engine } from '../engine.ts';
import type { Engines } from '../engines.ts';
import type { Lifecycle } from '../life/lifecycle.ts';
import type { DatabaseRow, DatabaseStore } from '../store.ts';

export interface TrialsDeps {
  readonly store: DatabaseStore;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  readonly refill: Pick<Refill, 'fill'>;
}

const PAGE = 500;
const NAMED = 5;

/** Tests only databases with a dump in the point. A failure does not stop the others. */
export async function tryDatabases(deps: TrialsDeps, signal: AbortSignal): Promise<DatabaseTrials[]> {
  const byEngine = Map.groupBy(await rowsOf(deps.store), ({ engine }) => engine);
  const trials: DatabaseTrials[] = [];
  for (const [name, rows] of byEngine) {
    // Only one server per account runs at a time.
    const ordered = rows.toSorted((one, other) => one.account_id - other.account_id);
    trials.push(await tryEngine(deps, { engine: deps.engines.get(name), rows: ordered, signal }));
  }
  return trials;
}

async function rowsOf(store: DatabaseStore): Promise<DatabaseRow[]> {
  const rows: DatabaseRow[] = [];
  for (let after = 0; ; ) {
    const page = await store.listPersistent({ after, limit: PAGE });
    rows.push(...page.filter((row) => row.kept_dump_bytes !== null));
    after = page.at(-1)?.id ?? after;
    if (page.length < PAGE) return rows;
  }
}

interface Tried {
  readonly engine: Engine;
  readonly rows: readonly DatabaseRow[];
  readonly signal: AbortSignal;
}

async function tryEngine(deps: TrialsDeps, { engine, rows, signal }: Tried): Promise<DatabaseTrials> {
  const about = { engine: engine.name, databases: rows.length };
  const { available, reason } = await engine.readiness();
  const none = { opened: 0, tables: 0, rows: null, failures: [] };
  if (!available) return { ...about, ...none, unavailable: reason ?? 'it is not available on this host' };
  let [opened, tables, estimated, isEstimated, failed] = [0, 0, 0, true, 0];
  const failures: string[] = [];
  for (const row of rows) {
    signal.throwIfAborted();
    try {
      const found = await tryOne(deps, { engine, row, signal });
      opened++;
      tables += found.tables;
      isEstimated &&= found.rows !== null;
      estimated += found.rows ?? 0;
    } catch (error) {
      if (isAppError(error) && error.code === 'engine_unavailable' && opened === 0)
        return { ...about, ...none, unavailable: error.message };
      if (++failed <= NAMED) failures.push(`${row.name} (${row.database_id}): ${(error as Error).message}`);
    }
  }
  if (failed > NAMED) failures.push(`and ${failed - NAMED} more`);
  return { ...about, opened, tables, rows: isEstimated ? estimated : null, failures, unavailable: null };
}

async function tryOne(
  { lifecycle, refill }: TrialsDeps,
  { engine, row, signal }: { engine: Engine; row: DatabaseRow; signal: AbortSignal },
): Promise<{ readonly tables: number; readonly rows: number | null }> {
  const database = lifecycle.inEngine(row);
  try {
    await refill.fill(row, engine);
    const tables = (await engine.tables(database, signal)).toJSON();
    const counts = tables.filter(({ type }) => type !== 'view').map((table) => table.estimated_rows);
    const isKnown = counts.every((count) => count !== null);
    const rows = isKnown ? counts.reduce((sum: number, count) => sum + (count ?? 0), 0) : null;
    return { tables: tables.length, rows };
  } finally {
    await engine.drop(database.database);
  }
}
