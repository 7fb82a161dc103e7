/** Earlier states of databases: owners list points and times, and restore one as a new database. */
import { Readable } from 'node:stream';
import type { Principal } from '../../calls/principal.ts';
import type { Reads } from '../../metadata/metadata.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { RestoreTurns } from '../../resources/restore-turns.ts';
import { type Engine, type EngineDatabase, LoadFailed } from '../engine.ts';
import type { OwnedDatabases } from '../life/owned-databases.ts';
import type { DatabaseMoments, DatabasePoint } from '../schema.ts';
import { type DatabaseRow, DatabaseStore } from '../store.ts';
import type { Moments, Past } from './moments.ts';
import { POINT_COMPONENT, pathInPoint } from './point-dumps.ts';

/** The files of recovery points, see recovery/point-files.ts. */
export interface PointFiles {
  /** The intact points, newest first; times in ms. */
  points(): Promise<
    readonly {
      readonly pointId: string;
      readonly createdAt: number;
      readonly gaps: readonly { readonly component: string }[];
    }[]
  >;
  /** undefined: not in the recovery point. Throws `data_corrupted`, `target_unavailable`. */
  find(
    pointId: string,
    file: { readonly component: string; readonly path: string },
  ): Promise<{ readonly sizeBytes: number; read(): AsyncIterable<Uint8Array> } | undefined>;
  /** Opens the metadata of an intact point while `work` runs. Throws `overloaded`, `out_of_space`, … */
  during<T>(pointId: string, work: (point: { readonly reads: Reads }) => Promise<T>): Promise<T>;
}

export interface DatabasePointsDeps {
  readonly owned: OwnedDatabases;
  readonly pointFiles: PointFiles;
  readonly moments: Moments;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

interface Into {
  readonly engine: Engine;
  readonly database: EngineDatabase;
  readonly signal: AbortSignal;
}

const PAGE = 500;

export class DatabasePoints {
  readonly #deps: DatabasePointsDeps;
  readonly #turns = new RestoreTurns({ what: 'databases' });

  constructor(deps: DatabasePointsDeps) {
    this.#deps = deps;
  }

  /**
   * The intact points since the database was created, newest first, without those that lack it.
   * Includes points of a deleted database that can be undeleted. Throws `database_not_found`.
   */
  async list(principal: Principal, databaseId: string): Promise<DatabasePoint[]> {
    const row = await this.#deps.owned.findAny(principal, databaseId);
    const points = await this.#pointsOf(row);
    return points.map(({ pointId, createdAt }) => ({ point_id: pointId, created_at: formatTime(createdAt) }));
  }

  /** Times to which it can be restored. Throws `database_not_found`, `target_unavailable`. */
  async moments(principal: Principal, databaseId: string): Promise<DatabaseMoments> {
    return this.#deps.moments.list(await this.#deps.owned.findAny(principal, databaseId));
  }

  /** The databases of any account in a point that are not deleted, oldest first. */
  async listIn(reads: Reads, accountId: number): Promise<DatabaseRow[]> {
    const store = new DatabaseStore(reads);
    const rows: DatabaseRow[] = [];
    for (let after = 0; ; ) {
      const page = await store.listOf(accountId, false, { after, limit: PAGE });
      rows.push(...page.filter(({ state }) => state !== 'creating'));
      after = page.at(-1)?.id ?? after;
      if (page.length < PAGE) return rows;
    }
  }

  /** The row of the database in a recovery point. Throws `point_not_found`. */
  async rowIn(pointId: string, accountId: number, databaseId: string): Promise<DatabaseRow> {
    const { pointFiles } = this.#deps;
    const row = await pointFiles.during(pointId, async ({ reads }) =>
      new DatabaseStore(reads).find(databaseId),
    );
    if (row?.account_id === accountId) return row;
    throw new AppError('point_not_found', `The recovery point has no database ${databaseId} of the account`);
  }

  /** Throws `point_not_found` for a point or a time without the database. */
  async assertIn(row: DatabaseRow, past: Past): Promise<void> {
    if ('at' in past) return this.#deps.moments.assertAt(row, past.at);
    const { pointId } = past;
    if ((await this.#pointsOf(row)).some((point) => point.pointId === pointId)) return;
    throw notIn(row, pointId);
  }

  /**
   * Loads the past database into another, empty one. Throws `overloaded`, `point_not_found`,
   * `invalid_request` for a dump above the size limit, `load_failed`, and the errors of reading the
   * dump.
   */
  load(row: DatabaseRow, past: Past, into: Into): Promise<void> {
    return this.#turns.run(row.account_id, async () => {
      if ('at' in past) {
        await loadDump(await this.#deps.moments.dump(row, past.at, into.signal), into);
        return;
      }
      const path = pathInPoint(row.database_id);
      const file = await this.#deps.pointFiles.find(past.pointId, { component: POINT_COMPONENT, path });
      if (file === undefined) throw notIn(row, past.pointId);
      await this.#loadFile(file, into);
    });
  }

  async #loadFile(
    { sizeBytes, read }: { readonly sizeBytes: number; read(): AsyncIterable<Uint8Array> },
    into: Into,
  ): Promise<void> {
    if (sizeBytes > into.database.sizeLimitBytes) throw tooSmall(sizeBytes);
    this.#deps.assertSpace(sizeBytes);
    await loadDump(Readable.from(read(), { objectMode: false }), into);
  }

  async #pointsOf({ created_at: since, database_id: id }: DatabaseRow) {
    const points = await this.#deps.pointFiles.points();
    const lacks = (gaps: readonly { readonly component: string }[]) =>
      gaps.some(({ component }) => component.includes(id));
    return points.filter(({ createdAt, gaps }) => createdAt >= since && !lacks(gaps));
  }
}

async function loadDump(dump: Readable, { engine, database, signal }: Into): Promise<void> {
  try {
    await engine.load(database, dump, { signal });
  } catch (error) {
    throw error instanceof LoadFailed ? new AppError('load_failed', error.message) : error;
  } finally {
    dump.destroy();
  }
}

function notIn({ database_id: id }: DatabaseRow, pointId: string): AppError {
  return new AppError('point_not_found', `No recovery point ${pointId} has the database`, {
    hint: `GET /api/databases/${id}/points lists the recovery points that contain it`,
  });
}

function tooSmall(sizeBytes: number): AppError {
  const mebibytes = Math.ceil(sizeBytes / 2 ** 20);
  return invalidField('size_limit_mb', `must be at least ${mebibytes}, the size of the dump in the point`);
}
