/** Moves databases from the layout of an earlier version of Cloudlet. */
import type { Engines } from './engines.ts';
import type { Lifecycle } from './lifecycle.ts';
import { ACCESS } from './states.ts';
import type { DatabaseStore } from './store.ts';

export interface MovesDeps {
  readonly store: Pick<DatabaseStore, 'listIn'>;
  readonly engines: Pick<Engines, 'all'>;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
}

/**
 * To be called at intervals; does nothing for an engine without databases to move. Rejects with the last
 * error.
 */
export async function moveDatabases({ store, engines, lifecycle }: MovesDeps): Promise<void> {
  let failure: unknown = null;
  for (const engine of engines.all()) {
    if (engine.moveIn === undefined) continue;
    const rows = await store.listIn(engine.name);
    const all = rows.map((row) => ({ database: lifecycle.inEngine(row), access: ACCESS[row.state] }));
    await engine.moveIn(all).catch((error: unknown) => {
      failure = error;
    });
  }
  if (failure !== null) throw failure;
}
