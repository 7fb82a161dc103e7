/** Databases as a source of recovery points: their dumps, stored as files (refill.ts loads them). */
import { PassThrough, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Snapshot, Source, SourceFile } from '../../recovery/points/sources.ts';
import type { KeptDumps } from '../creation/database-deleter.ts';
import { type Engines, usualFormat } from '../engines.ts';
import type { Lifecycle } from '../life/lifecycle.ts';
import type { DatabaseTurns } from '../life/states.ts';
import { type DatabaseRow, DatabaseStore } from '../store.ts';

export interface PointDumpsDeps {
  readonly store: DatabaseStore;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  readonly turns: DatabaseTurns;
  readonly kept: KeptDumps;
  /** Timeout of a single dump for a recovery point, ms. */
  readonly pointDumpMs: number;
  /** Timeout between two pieces, ms: a session may hold a lock on the tables. */
  readonly pointSilenceMs: number;
}

const PAGE = 500;
/** Folder of kept dumps in a point, as in cloud/cloud.ts. */
const FOLDER = 'databases/kept';
export const POINT_COMPONENT = 'databases';
/** Path of a database's dump in a point. */
export const pathInPoint = (databaseId: string) => `${FOLDER}/${databaseId}`;
const OWNER_ONLY = 0o600;

/** A failed database becomes a gap of the point, which continues without it. */
export function databaseSource(deps: PointDumpsDeps): Source {
  return {
    name: POINT_COMPONENT,
    consistency: 'each database as of the time it was read',
    async *files({ reads }: Snapshot, signal) {
      const rows = new DatabaseStore(reads);
      for (let after = 0; ; ) {
        const page = await rows.listPersistent({ after, limit: PAGE });
        for (const row of page) yield fileOf(deps, row, signal);
        after = page.at(-1)?.id ?? after;
        if (page.length < PAGE) return;
      }
    },
  };
}

function fileOf(deps: PointDumpsDeps, seen: DatabaseRow, signal: AbortSignal): SourceFile {
  return {
    path: pathInPoint(seen.database_id),
    mode: OWNER_ONLY,
    changes: deps.engines.about(seen.engine).dumpChanges,
    isPacked: false,
    gap: `database ${seen.name} (${seen.database_id})`,
    open: async () => {
      // Read again, because the database may have been deleted or undeleted since.
      const row = await deps.store.find(seen.database_id);
      if (row === undefined || (row.is_dropped === 1 && row.kept_dump_bytes === null)) return undefined;
      const out = new PassThrough();
      void copy(deps, { row, out, signal }).catch((error: Error) => out.destroy(error));
      return out;
    },
  };
}

async function copy(
  { store, engines, lifecycle, turns, kept, pointDumpMs, pointSilenceMs }: PointDumpsDeps,
  {
    row,
    out,
    signal,
  }: { readonly row: DatabaseRow; readonly out: PassThrough; readonly signal: AbortSignal },
): Promise<void> {
  const { database_id: id } = row;
  const readKept = (either: AbortSignal) => kept.read(id, (dump) => pipeline(dump, out, { signal: either }));
  if (row.kept_dump_bytes !== null) return readKept(signal);
  const late = AbortSignal.timeout(pointDumpMs);
  const silence = new Silence(pointSilenceMs);
  try {
    await turns.during(
      [id],
      async (either) => {
        const engine = engines.get(row.engine);
        const dump = engine.dump(lifecycle.inEngine(row), usualFormat(engine), {
          signal: either,
          isForPoint: true,
        });
        const opened = await silence.during(dump).catch(async (error) => {
          // A concurrent deletion may have removed it from its engine after keeping a last dump.
          const now = await store.find(id);
          if (now === undefined || now.kept_dump_bytes === null) throw error;
          return null;
        });
        if (opened === null) return readKept(either);
        await pipeline(silence.broken(opened.stream), out, { signal: either });
      },
      AbortSignal.any([signal, late, silence.signal]),
    );
  } catch (error) {
    if (silence.signal.aborted) {
      const seconds = Math.round(pointSilenceMs / 1000);
      throw new Error(`no data for ${seconds} s: a session may hold a lock on its tables`, {
        cause: error,
      });
    }
    if (!late.aborted) throw error;
    throw new Error(`timed out after ${Math.round(pointDumpMs / 1000)} s`, { cause: error });
  }
}

/** Aborts if a source yields no data for this long; time spent by its reader does not count. */
class Silence {
  readonly #ms: number;
  readonly #over = new AbortController();

  constructor(ms: number) {
    this.#ms = ms;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  async during<T>(work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.#over.abort(), this.#ms);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }

  async *broken(stream: Readable): AsyncGenerator<Uint8Array> {
    const chunks = stream[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await this.during(chunks.next());
        if (next.done) return;
        yield next.value;
      }
    } finally {
      stream.destroy();
    }
  }
}
