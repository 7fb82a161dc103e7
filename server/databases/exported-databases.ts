/** An account's databases in an export: their descriptions, and dumps in their engines' own formats. */
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ExportedFile,
  type Exporting,
  type ExportSource,
  jsonFile,
  type LeftOutFile,
  safePath,
  Unreadable,
} from '../calls/account-export.ts';
import type { Principal } from '../calls/principal.ts';
import { isAppError } from '../platform/errors.ts';
import type { KeptDumps } from './creation/database-deleter.ts';
import type { DatabaseViews } from './database-view.ts';
import { type Engines, usualFormat } from './engines.ts';
import type { DumpCopies } from './life/dump-copies.ts';
import type { Egress } from './life/egress.ts';
import type { Lifecycle } from './life/lifecycle.ts';
import type { DatabaseTurns } from './life/states.ts';
import { presentSaved } from './querying/saved-queries.ts';
import type { SavedSql } from './querying/saved-sql.ts';
import type { DatabaseRow, DatabaseStore } from './store.ts';

export interface ExportedDatabasesDeps {
  readonly store: Pick<DatabaseStore, 'listAllOf'>;
  readonly saved: Pick<SavedSql, 'list'>;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  readonly turns: DatabaseTurns;
  readonly views: Pick<DatabaseViews, 'present'>;
  readonly kept: Pick<KeptDumps, 'read'>;
  readonly egress: Pick<Egress, 'counted'>;
  readonly copies: DumpCopies;
}

const PAGE = 500;
/** A database that is suspended or resumed ends its running dumps; new ones work afterwards. */
const TRIES = 5;
const PAUSE_MS = 1000;

export class ExportedDatabases implements ExportSource {
  readonly #deps: ExportedDatabasesDeps;

  constructor(deps: ExportedDatabasesDeps) {
    this.#deps = deps;
  }

  async *files(exporting: Exporting): AsyncGenerator<ExportedFile | LeftOutFile> {
    for await (const row of this.#rows(exporting.owner)) {
      const path = `databases/${safePath(row.name)}-${row.database_id.slice(-6)}`;
      yield jsonFile(`${path}.json`, await this.#deps.views.present(row), 'database');
      const saved = await this.#deps.saved.list(row.id);
      if (saved.length > 0) yield jsonFile(`${path}-queries.json`, saved.map(presentSaved));
      if (row.state === 'creating') yield { path, leftOut: 'it is still being created' };
      else yield this.#dump(row, `${path}.${this.#extensionOf(row)}`, exporting);
    }
  }

  /** Includes deleted ones, while their last dump is kept. */
  async *#rows({ accountId }: Principal): AsyncGenerator<DatabaseRow> {
    for (let after = 0; ; ) {
      const rows = await this.#deps.store.listAllOf(accountId, { after, limit: PAGE });
      yield* rows.filter(({ state, kept_dump_bytes: kept }) => state !== 'deleting' || kept !== null);
      after = rows.at(-1)?.id ?? after;
      if (rows.length < PAGE) return;
    }
  }

  #dump(row: DatabaseRow, path: string, exporting: Exporting): ExportedFile {
    const { kept, egress } = this.#deps;
    return {
      path,
      kind: null,
      modifiedAt: 0,
      sizeBytes: row.kept_dump_bytes,
      read: async (sink, signal) => {
        let isBegun = false;
        const write = async (pieces: AsyncIterable<Uint8Array>) => {
          const all = exporting.isCounted ? egress.counted(row.database_id, pieces) : pieces;
          for await (const piece of all) {
            isBegun = true;
            await sink(piece);
          }
        };
        for (let tries = 1; ; tries++) {
          try {
            if (row.kept_dump_bytes === null) await this.#write(row, write, signal);
            else await kept.read(row.database_id, (dump) => pipeline(dump, write, { signal }));
            return;
          } catch (error) {
            signal.throwIfAborted();
            if (isBegun || tries === TRIES) throw new Unreadable(reasonOf(error), { cause: error });
            await sleep(PAUSE_MS, undefined, { signal });
          }
        }
      },
    };
  }

  /** The usual format's name, also while the engine is missing. */
  #extensionOf({ engine: name }: DatabaseRow): string {
    const engine = [...this.#deps.engines.all()].find((one) => one.name === name);
    return engine === undefined ? 'dump' : usualFormat(engine);
  }

  async #write(
    row: DatabaseRow,
    write: (pieces: AsyncIterable<Uint8Array>) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { engines, lifecycle, turns, copies } = this.#deps;
    const engine = engines.get(row.engine);
    const work = async (either: AbortSignal) => {
      const dump = await engine.dump(lifecycle.inEngine(row), usualFormat(engine), { signal: either });
      await copies.during(row.account_id, dump, () => pipeline(dump.stream, write, { signal: either }));
    };
    await turns.during([row.database_id], work, signal);
  }
}

function reasonOf(error: unknown): string {
  return isAppError(error) ? error.message : 'its engine could not dump it';
}
