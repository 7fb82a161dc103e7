/** Dumps and loads whole databases; a database stays available during a dump. */
import { Readable } from 'node:stream';
import type { Principal } from '../calls/principal.ts';
import { KeyedSemaphore } from '../platform/concurrency.ts';
import { AppError, invalidField } from '../platform/errors.ts';
import { type DatabaseViews, MIB } from './database-view.ts';
import { type Dump, LoadFailed } from './engine.ts';
import type { Engines } from './engines.ts';
import { LeftOut } from './left-out.ts';
import type { DataFaults } from './life/data-faults.ts';
import type { DumpCopies } from './life/dump-copies.ts';
import type { Egress } from './life/egress.ts';
import type { Lifecycle } from './life/lifecycle.ts';
import type { OwnedDatabases } from './life/owned-databases.ts';
import { assertReadable, assertReady, type DatabaseTurns } from './life/states.ts';
import { ofEngine } from './packings/other-files.ts';
import { unpacked } from './packings/packed-dumps.ts';
import { inUtf8 } from './packings/utf16-text.ts';
import type { LoadedDatabase } from './query-schema.ts';
import type { DatabaseRow } from './store.ts';

export interface DumpsDeps {
  readonly owned: OwnedDatabases;
  readonly engines: Engines;
  readonly lifecycle: Pick<Lifecycle, 'inEngine'>;
  readonly turns: DatabaseTurns;
  readonly views: DatabaseViews;
  readonly egress: Pick<Egress, 'counted'>;
  readonly copies: DumpCopies;
  /** undefined: damage is not tracked. */
  readonly faults?: Pick<DataFaults, 'noteReplaced'> | undefined;
  /** Throws `out_of_space` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
}

export interface NamedDump extends Dump {
  readonly fileName: string;
  /** Counts the bytes that pass through as egress. */
  readonly counted: (pieces: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>;
}

interface Wanted {
  /** undefined: the engine's default. */
  readonly format: string | undefined;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  readonly send: (dump: NamedDump) => Promise<void>;
}

interface Given {
  readonly dump: Readable;
  readonly isStrict?: boolean | undefined;
  readonly signal: AbortSignal;
}

/**
 * Concurrent dumps per account: the dump of an SQLite or MongoDB database is a copy on the host's disk, which
 * stays until its reader has it all.
 */
const AT_ONCE = 4;
const WAIT_MS = 60_000;

export class Dumps {
  readonly #deps: DumpsDeps;
  readonly #sending = new KeyedSemaphore<number>(AT_ONCE);

  constructor(deps: DumpsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when the dump was sent completely. Throws `database_not_ready`, `invalid_request` for a format
   * that the engine does not have, `overloaded` while other dumps of the account are not read, and
   * `out_of_space` beyond the account's share of the disk.
   */
  async dump(principal: Principal, databaseId: string, wanted: Wanted): Promise<void> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(tooMany()), WAIT_MS).unref();
    const either = AbortSignal.any([wanted.signal, late.signal]);
    const begin = () => {
      clearTimeout(timer);
      return this.#dump(principal, databaseId, wanted);
    };
    await this.#sending.run(principal.accountId, either, begin).finally(() => clearTimeout(timer));
  }

  async #dump(principal: Principal, databaseId: string, { format, signal, send }: Wanted): Promise<void> {
    const { owned, engines, lifecycle, turns, egress, copies } = this.#deps;
    const row = await owned.findLive(principal, databaseId);
    assertReadable(row);
    const counted: NamedDump['counted'] = (pieces) => egress.counted(databaseId, pieces);
    const engine = engines.get(row.engine);
    const wanted = format ?? engine.dumpFormats[0] ?? '';
    if (!engine.dumpFormats.includes(wanted)) {
      throw invalidField('format', `must be one of ${engine.dumpFormats.join(', ')} for ${row.engine}`);
    }
    const work = async (either: AbortSignal) => {
      const dump = await engine.dump(lifecycle.inEngine(row), wanted, { signal: either });
      const named = { ...dump, counted, fileName: `${row.name}.${dump.extension}` };
      await copies.during(row.account_id, dump, () => send(named));
    };
    await turns.during([databaseId], work, signal);
  }

  /**
   * Replaces the whole content; a data-only dump is added to the existing tables. Throws
   * `load_failed`, `payload_too_large`, `database_not_ready`; then, and when the client disconnects
   * early, the database is unchanged. `isStrict`: nothing is left out.
   */
  async load(
    principal: Principal,
    databaseId: string,
    { dump, isStrict = false, signal }: Given,
  ): Promise<LoadedDatabase> {
    const { owned, engines, lifecycle, turns, views, faults } = this.#deps;
    return turns.run(databaseId, async () => {
      const row = await owned.findLive(principal, databaseId);
      // Databases over their limit are included: loading a smaller dump is a way out.
      assertReadable(row);
      const abouts = engines.descriptions();
      const bound = (layer: AsyncIterable<Uint8Array>) => this.#limited(layer, row);
      const plain = ofEngine(row.engine, inUtf8(unpacked(bound(dump), { bound })), abouts);
      const pieces = this.#limited(plain, row);
      const limited = Readable.from(pieces, { objectMode: false });
      const leftOut = new LeftOut();
      let added = false;
      const adding = () => {
        assertReady(row);
        added = true;
      };
      const how = isStrict ? { adding } : { adding, leftOut };
      const work = (either: AbortSignal) =>
        engines.get(row.engine).load(lifecycle.inEngine(row), limited, { ...how, signal: either });
      try {
        await turns.during([databaseId], work, signal);
      } catch (error) {
        throw error instanceof LoadFailed ? refusal(error, leftOut) : error;
      } finally {
        limited.destroy();
      }
      if (!added) faults?.noteReplaced(databaseId);
      const { notes, count: left_out } = leftOut;
      return { ...(await views.present(row)), added, left_out, notes: [...notes] };
    });
  }

  /** Limits the received bytes, the output of each unpacking, and the loaded bytes. */
  async *#limited(dump: AsyncIterable<Uint8Array>, row: DatabaseRow): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of dump) {
      bytes += piece.length;
      if (bytes > row.size_limit_bytes) throw tooLarge(row);
      this.#deps.assertSpace(piece.length);
      yield piece;
    }
  }
}

function tooMany(): AppError {
  return new AppError('overloaded', `${AT_ONCE} dumps of this account are being downloaded`, {
    hint: 'Wait until one of them has finished, or close its connection to cancel it',
    retryAfterSeconds: 10,
  });
}

function refusal(error: LoadFailed, { hint }: LeftOut): AppError {
  return new AppError('load_failed', error.message, hint === undefined ? {} : { hint });
}

function tooLarge({ name, size_limit_bytes }: DatabaseRow): AppError {
  const limit = Math.floor(size_limit_bytes / MIB);
  return new AppError('payload_too_large', `The dump exceeds the size limit of ${name}, ${limit} MB`, {
    hint: 'Set a larger size_limit_mb first',
  });
}
