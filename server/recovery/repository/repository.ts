/**
 * A repository of recovery points: pieces, content-addressed and stored once, and manifests that list them.
 * docs/recovery-format.md describes the format.
 *
 * ```
 * repository.json        format, id, and the repository's key sealed under the recovery key
 * pieces/<2>/<64 hex>    one piece
 * points/<point id>      one sealed manifest
 * deleting/<point id>    an empty file: the point is deleted; `.2`: undeleted, `.3`: deleted again
 * journals/<cloud>       later revocations, sealed (journal.ts)
 * logs/<server>/…        logs of database servers, sealed (log-lines.ts)
 * writers/<number>       the write lease (lease.ts)
 * ```
 *
 * There is one writer at a time. Files with other names are ignored and kept. Files are never changed in
 * place, except for a piece known to be damaged.
 */
import { isId } from '../../platform/ids.ts';
import { LogLines } from '../logs/log-lines.ts';
import { DeletionMarks } from '../points/deletion-marks.ts';
import { HOLE } from './chunks.ts';
import { Damaged, PieceBox } from './piece-box.ts';
import { HEAD_FILE, type RepositoryKeys } from './repository-head.ts';
import type { FilePart, KeptPart, KeptPiece, PieceStore, PlacedFile, Removal, Target } from './target.ts';

const PIECE_NAME = /^[0-9a-f]{64}$/;
/** Concurrent pieces of one file: limits memory to as many MiB. */
const AT_ONCE = 4;

/** Location of a file's bytes. */
export interface StoredBytes {
  readonly sizeBytes: number;
  readonly pieces: readonly string[];
  /** Bytes that were new to the repository, as stored. */
  readonly addedBytes: number;
}

export class Repository {
  readonly #target: Target;
  readonly #box: PieceBox;
  readonly #pieces: PieceStore;
  readonly id: string;
  /** Name of a hole's block, which takes no space when restored. */
  readonly holeName: string;
  /** Cached, because disks consist mostly of holes. */
  #keptHole: Promise<KeptPiece> | undefined;
  #suspects: ReadonlySet<string> = new Set();

  constructor(target: Target, { key, repositoryId }: RepositoryKeys) {
    this.#target = target;
    this.#box = new PieceBox(key);
    this.#pieces = target.pieces(key);
    this.id = repositoryId;
    this.holeName = this.#box.nameOf(HOLE);
  }

  get #marks(): DeletionMarks {
    return new DeletionMarks(this.#target);
  }

  /** Logs of database servers. */
  get logs(): LogLines {
    const { store, read } = this;
    const work = { store: store.bind(this), read: read.bind(this) };
    return new LogLines({ target: this.#target, box: this.#box, ...work });
  }

  /**
   * Stores the pieces of a file. `isPacked`: compressed already. Rejects with the error of source
   * or target; pieces stored by then remain, for a retry or the sweep.
   */
  async store(
    pieces: AsyncIterable<Uint8Array>,
    { isPacked, signal }: { readonly isPacked: boolean; readonly signal: AbortSignal },
  ): Promise<StoredBytes> {
    const names: string[] = [];
    const running = new Set<Promise<void>>();
    let sizeBytes = 0;
    let addedBytes = 0;
    let failure: unknown;
    for await (const bytes of pieces) {
      signal.throwIfAborted();
      const index = names.push('') - 1;
      sizeBytes += bytes.length;
      const put = this.#keep(bytes, isPacked)
        .then((kept) => {
          names[index] = kept.name;
          addedBytes += kept.addedBytes;
        })
        .catch((error: unknown) => {
          failure ??= error;
        })
        .finally(() => running.delete(put));
      running.add(put);
      if (running.size >= AT_ONCE) await Promise.race(running);
      if (failure !== undefined) break;
    }
    await Promise.all(running);
    if (failure !== undefined) throw failure;
    return { sizeBytes, pieces: names, addedBytes };
  }

  /** Warms up the workers for pieces that will be stored soon. */
  prepare(): void {
    this.#pieces.prepare();
  }

  /** Stores the next bytes of a local file. */
  storePart(part: FilePart, isPacked: boolean): Promise<KeptPart> {
    return this.#pieces.keepPart(part, isPacked);
  }

  /**
   * The bytes of a small file, piece by piece; the caller owns each buffer. Throws Damaged, which
   * names the piece.
   */
  async *read(pieces: Iterable<string>): AsyncGenerator<Buffer> {
    for (const name of pieces) yield await this.#pieces.read(name);
  }

  /** Writes a file on this host, completely or not at all. Throws Damaged, and errors of that file. */
  writeFile(file: PlacedFile, pieces: readonly string[]): Promise<void> {
    return this.#pieces.writeFile(file, pieces);
  }

  /** Reads a piece completely and returns the damage, if any. `isQuick`: checks the seal only. */
  async check(piece: string, isQuick = false): Promise<Damaged | undefined> {
    try {
      await this.#pieces.check(piece, isQuick);
      return undefined;
    } catch (error) {
      if (error instanceof Damaged) return error;
      throw error;
    }
  }

  /** Marks pieces as damaged, so that they are stored again when their bytes recur. */
  distrust(pieces: ReadonlySet<string>): void {
    this.#suspects = pieces;
    this.#pieces.distrust(pieces);
  }

  isTrusted(piece: string): boolean {
    return !this.#suspects.has(piece);
  }

  get lockDays(): number {
    return this.#target.lockDays;
  }

  renewLock(piece: string): Promise<void> {
    return this.#pieces.renewLock(piece);
  }

  renewHead(): Promise<void> {
    return this.#target.renewLock(HEAD_FILE);
  }

  get removal(): Removal {
    return this.#target.removal;
  }

  /** Files that mark a point, in the order of their removal. */
  async filesOf(pointId: string): Promise<string[]> {
    return [manifestFile(pointId), ...(await this.#marks.of(pointId))];
  }

  /** False if the whole target is missing or never existed: then nothing is known about any piece. */
  isThere(): Promise<boolean> {
    return this.#target.has(HEAD_FILE);
  }

  /** Resolves with the stored bytes. `beforePut` runs when everything else is durable, and may throw. */
  async putManifest(
    pointId: string,
    manifest: Uint8Array,
    beforePut: () => Promise<void> = async () => {},
  ): Promise<Buffer> {
    const sealed = this.#box.sealManifest(pointId, manifest);
    await this.#target.sync();
    await beforePut();
    await this.#target.putSynced(manifestFile(pointId), sealed);
    return sealed;
  }

  /** undefined: no such point. Throws Damaged. */
  async getManifest(pointId: string): Promise<{ bytes: Buffer; sealed: Buffer } | undefined> {
    const sealed = await this.#target.get(manifestFile(pointId));
    return sealed && { bytes: this.#box.openManifest(pointId, sealed), sealed };
  }

  /** Replaces the journal of that cloud; it becomes durable later. */
  async putJournal(cloud: string, bytes: Uint8Array): Promise<void> {
    const file = journalFile(cloud);
    await this.#target.put(file, this.#box.sealManifest(file, bytes));
  }

  /** undefined: none. Throws Damaged. */
  async getJournal(cloud: string): Promise<Buffer | undefined> {
    const file = journalFile(cloud);
    const sealed = await this.#target.get(file);
    return sealed && this.#box.openManifest(file, sealed);
  }

  /** Ids of the points that have a manifest. */
  async points(): Promise<string[]> {
    const ids: string[] = [];
    for await (const name of this.#target.list('points')) ids.push(name.slice('points/'.length));
    return ids.filter((id) => isId('drp', id)).sort();
  }

  /** Ids of the deleted points that can be undeleted. */
  async deleted(): Promise<string[]> {
    return this.#marks.deleted();
  }

  async markDeleted(pointId: string): Promise<void> {
    await this.#marks.set(pointId);
  }

  async unmarkDeleted(pointId: string): Promise<void> {
    await this.#marks.unset(pointId);
  }

  /** Removes points permanently. The sweep removes their pieces. */
  async forget(pointIds: readonly string[]): Promise<void> {
    for (const id of pointIds) await this.#target.remove(manifestFile(id));
    await this.#target.sync();
    for (const id of pointIds) await this.#marks.remove(id);
  }

  /** Names of all pieces, unordered. Files with other names are ignored. */
  async *pieces(): AsyncGenerator<string> {
    for await (const file of this.#target.list('pieces')) {
      const name = file.slice(file.lastIndexOf('/') + 1);
      if (PIECE_NAME.test(name) && file === pieceFile(name)) yield name;
    }
  }

  /** Resolves with the bytes freed. */
  removePiece(piece: string): Promise<number> {
    return this.#target.remove(pieceFile(piece));
  }

  /** Removes the unfinished files of a killed writer; resolves with their number. */
  async removeUnfinished(): Promise<number> {
    const inPieces = await this.#target.removeUnfinished('pieces');
    return inPieces + (await this.#target.removeUnfinished('points'));
  }

  async #keep(bytes: Uint8Array, isPacked: boolean): Promise<KeptPiece> {
    if (bytes !== HOLE) return this.#pieces.keep(bytes, isPacked);
    const isFirst = this.#keptHole === undefined;
    this.#keptHole ??= this.#pieces.keep(Buffer.from(HOLE), false);
    const kept = await this.#keptHole;
    return isFirst ? kept : { ...kept, addedBytes: 0 };
  }
}

/** Path in the repository. */
export function pieceFile(name: string): string {
  return `pieces/${name.slice(0, 2)}/${name}`;
}

/** Path in the repository. */
export function manifestFile(pointId: string): string {
  return `points/${pointId}`;
}

function journalFile(cloud: string): string {
  return `journals/${cloud}`;
}
