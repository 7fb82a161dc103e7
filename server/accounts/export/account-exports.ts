/**
 * All data of an account as one zip that is generated while it is sent: the files of each domain,
 * and at the end MANIFEST.json, which lists each file with its length and SHA-256, and what is
 * missing and why. Memory does not grow with the account: the directory of the zip and the manifest
 * are kept in spools.
 */
import { createHash } from 'node:crypto';
import {
  EXPORTED_KINDS,
  type ExportedFile,
  type ExportedKind,
  type Exporting,
  type ExportSource,
  type LeftOutFile,
  type PieceSink,
  type Spool,
  Unreadable,
} from '../../calls/account-export.ts';
import { ownerOf } from '../../calls/account-resources.ts';
import type { Call } from '../../calls/principal.ts';
import type { Changes } from '../../metadata/change.ts';
import { Pace } from '../../platform/background/pace.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { endOfTick } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import { ZipWriter } from '../../storage/archives/zip-writer.ts';
import { accountNotFound } from '../account-errors.ts';
import { nameOf } from '../account-view.ts';
import type { PasswordChecks } from '../sign-in/password-checks.ts';
import type { AccountRow, AccountStore } from '../store.ts';

export interface AccountExportsDeps {
  readonly store: Pick<AccountStore, 'account'>;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly checks: Pick<PasswordChecks, 'assertFresh'>;
  /** In the order of the archive. Accounts themselves come first. */
  readonly sources: readonly ExportSource[];
  readonly openSpool: () => Spool;
  /** Maximum concurrent exports of all accounts that are read quickly; default: 4. */
  readonly mostAtOnce?: number;
  /** Maximum concurrent exports, including slowly read ones; default: 32. */
  readonly mostInAll?: number;
}

export interface ExportArchive {
  readonly fileName: string;
  /**
   * Throws `job_running` and `overloaded` before anything is sent. Rejects when the caller disconnects, or
   * what is stored cannot be read: the zip then has no end, and no program opens it.
   */
  readonly send: (sink: PieceSink, signal: AbortSignal) => Promise<void>;
}

const FORMAT = 1;
/** Each reads at its caller's speed from the disk, which other requests need too. */
const MOST_AT_ONCE = 4;
const MANIFEST = 'MANIFEST.json';
/**
 * A slower reader costs the disk little, so it takes none of these slots: otherwise four accounts could block
 * everyone's exports.
 */
const SLOW_BYTES_PER_MS = 1024;
const MOST_IN_ALL = 32;
/** When there are so many, the slowest of those that were waited for this long ends for another. */
const PATIENCE_MS = 60_000;
/** The first missing files are also named at the top. */
const MOST_NAMED = 1000;

export class AccountExports {
  readonly #deps: AccountExportsDeps;
  /** Keyed by account, on this node: the node with the databases runs all exports. */
  readonly #running = new Map<number, Reader>();

  constructor(deps: AccountExportsDeps) {
    this.#deps = deps;
  }

  /** The caller's own. Throws `password_required`, `account_not_found`. */
  openOwn(call: Call, wantsDisks: boolean): Promise<ExportArchive> {
    return this.#open(call, { accountId: call.principal.accountId, wantsDisks, isCounted: true });
  }

  /** Any account's, for an administrator. Throws `password_required`, `account_not_found`. */
  openOf(call: Call, accountId: number, wantsDisks: boolean): Promise<ExportArchive> {
    return this.#open(call, { accountId, wantsDisks, isCounted: false });
  }

  async #open(
    call: Call,
    asked: { readonly accountId: number } & Pick<Exporting, 'wantsDisks' | 'isCounted'>,
  ): Promise<ExportArchive> {
    const { store, checks } = this.#deps;
    await checks.assertFresh(call.principal);
    const row = await store.account(asked.accountId);
    if (row === undefined) throw accountNotFound();
    return {
      fileName: `${row.username}-${formatTime(this.#deps.clock.now()).slice(0, 10)}.zip`,
      send: (sink, signal) =>
        this.#alone(row.id, (reader) =>
          this.#send(call, { row, ...asked, sink: reader.sink(sink), signal: reader.signal(signal) }),
        ),
    };
  }

  async #alone(accountId: number, work: (reader: Reader) => Promise<void>): Promise<void> {
    if (this.#running.has(accountId)) {
      throw new AppError('job_running', 'An export of this account is running', {
        hint: 'Wait until the running export has finished, or close its connection to cancel it',
        retryAfterSeconds: 10,
      });
    }
    this.#makeRoom();
    const reader = new Reader(this.#deps.clock);
    this.#running.set(accountId, reader);
    try {
      await work(reader);
    } finally {
      if (this.#running.get(accountId) === reader) this.#running.delete(accountId);
    }
  }

  /** Ends the export of the slowest reader when there are too many. Throws `overloaded` if none is slow. */
  #makeRoom(): void {
    const { mostAtOnce = MOST_AT_ONCE, mostInAll = MOST_IN_ALL } = this.#deps;
    const running = [...this.#running];
    const quick = running.filter(([, { pace }]) => !pace.isBelow(SLOW_BYTES_PER_MS));
    if (quick.length < mostAtOnce && running.length < mostInAll) return;
    const [slowest] = running
      .filter(([, { pace }]) => pace.isBelow(SLOW_BYTES_PER_MS, PATIENCE_MS))
      .sort(([, a], [, b]) => a.pace.bytesPerMs() - b.pace.bytesPerMs());
    if (quick.length >= mostAtOnce || slowest === undefined) {
      throw new AppError('overloaded', `${running.length} exports of other accounts are running`, {
        hint: 'Try again in a few minutes, when one of these exports has ended',
        retryAfterSeconds: 60,
      });
    }
    const [accountId, reader] = slowest;
    this.#running.delete(accountId);
    reader.end();
  }

  async #send(call: Call, { row, sink, ...asked }: Sending): Promise<void> {
    const { changes, clock, openSpool, sources } = this.#deps;
    // The audit log entry is stored before the first byte is sent.
    await changes.run(call, () => ({}));
    const spools: Spool[] = [];
    const spool = () => {
      const opened = openSpool();
      spools.push(opened);
      return opened;
    };
    const owner = ownerOf({ accountId: row.id, username: row.username, canonicalId: row.canonical_id });
    const made = { at: clock.now(), by: nameOf(call.principal) };
    try {
      const packing = new Packing({
        zip: new ZipWriter(sink, spool()),
        lines: spool(),
        signal: asked.signal,
      });
      for (const source of sources) {
        for await (const file of source.files({ ...asked, owner, spool })) await packing.add(file);
      }
      await packing.end({ row, ...made });
    } finally {
      for (const one of spools) await one.close();
    }
  }
}

interface Sending extends Pick<Exporting, 'wantsDisks' | 'isCounted' | 'signal'> {
  readonly row: AccountRow;
  readonly sink: PieceSink;
}

/** The receiver of an export: its reading speed, and the end of its slot. */
class Reader {
  readonly pace: Pace;
  readonly #ended = new AbortController();

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.pace = new Pace(clock);
  }

  end(): void {
    const detail =
      'The export was cancelled because others are waiting and it was read at less than 1 MiB per second';
    this.#ended.abort(new AppError('overloaded', detail));
  }

  signal(ofCaller: AbortSignal): AbortSignal {
    return AbortSignal.any([ofCaller, this.#ended.signal]);
  }

  /** Rejects when the slot ends, also while the receiver reads nothing. */
  sink(inner: PieceSink): PieceSink {
    const ended = Promise.withResolvers<never>();
    ended.promise.catch(() => {});
    const { signal } = this.#ended;
    signal.addEventListener('abort', () => ended.reject(signal.reason));
    return async (piece) => {
      this.pace.waits();
      await Promise.race([inner(piece), ended.promise]);
      this.pace.went(piece.length);
    };
  }
}

interface PackingDeps {
  readonly zip: ZipWriter;
  /** Entries of the manifest. */
  readonly lines: Spool;
  readonly signal: AbortSignal;
}

class Packing {
  readonly #deps: PackingDeps;
  readonly #counts = Object.fromEntries(EXPORTED_KINDS.map((kind) => [`${kind}s`, 0]));
  readonly #leftOut: { readonly path: string; readonly reason: string }[] = [];
  #lines = 0;
  #missing = 0;
  #files = 0;
  #bytes = 0;

  constructor(deps: PackingDeps) {
    this.#deps = deps;
  }

  async add(file: ExportedFile | LeftOutFile): Promise<void> {
    this.#deps.signal.throwIfAborted();
    if ('leftOut' in file) await this.#leave(file.path, file.leftOut);
    else await this.#pack(file);
    await endOfTick();
  }

  /** A truncated file stays in the archive, and the manifest says so. */
  async #pack(file: ExportedFile): Promise<void> {
    const { zip, signal } = this.#deps;
    const hash = createHash('sha256');
    let bytes = 0;
    let broken: string | null = null;
    try {
      await zip.add({
        name: file.path,
        modifiedAt: file.modifiedAt,
        sizeBytes: file.sizeBytes,
        read: async (sink) => {
          const counting = async (piece: Uint8Array) => {
            hash.update(piece);
            bytes += piece.length;
            await sink(piece);
          };
          await file.read(counting, signal).catch((error: unknown) => {
            if (!(error instanceof Unreadable) || bytes === 0) throw error;
            broken = error.message;
          });
        },
      });
    } catch (error) {
      if (!(error instanceof Unreadable)) throw error;
      return this.#leave(file.path, error.message);
    }
    this.#count(file.kind);
    this.#files++;
    this.#bytes += bytes;
    const fact = { path: file.path, bytes, sha256: hash.digest('hex') };
    if (broken === null) return this.#note(fact);
    await this.#leave(file.path, `incomplete: ${broken}`, fact);
  }

  #count(kind: ExportedKind | null): void {
    if (kind !== null) this.#counts[`${kind}s`] = (this.#counts[`${kind}s`] ?? 0) + 1;
  }

  async #leave(path: string, reason: string, fact: object = { path }): Promise<void> {
    this.#missing++;
    if (this.#leftOut.length < MOST_NAMED) this.#leftOut.push({ path, reason });
    await this.#note({ ...fact, left_out: reason });
  }

  async #note(line: object): Promise<void> {
    const before = this.#lines++ === 0 ? '' : ',\n';
    await this.#deps.lines.append(Buffer.from(before + JSON.stringify(line)));
  }

  async end({ row, at, by }: { readonly row: AccountRow; readonly at: number; readonly by: string }) {
    const { zip, lines } = this.#deps;
    const about = {
      format: FORMAT,
      account: { id: row.id, username: row.username, canonical_id: row.canonical_id },
      made_at: formatTime(at),
      made_by: by,
      counts: { files: this.#files, bytes: this.#bytes, ...this.#counts, left_out: this.#missing },
      left_out: this.#leftOut,
    };
    const head = `${JSON.stringify(about, null, 1).slice(0, -2)},\n "files": [\n`;
    const read = async (sink: PieceSink) => {
      await sink(Buffer.from(head));
      for await (const piece of lines.bytes()) await sink(piece);
      await sink(Buffer.from('\n]}\n'));
    };
    await zip.add({ name: MANIFEST, modifiedAt: at, sizeBytes: null, read });
    await zip.end();
  }
}
