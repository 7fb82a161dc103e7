/**
 * A repository of recovery points: pieces, named by what is in them and kept once, and manifests that list
 * them. docs/recovery-format.md is its format on one page.
 *
 * ```
 * repository.json        format, id, and the repository's key sealed under the recovery key
 * pieces/<2>/<64 hex>    one piece
 * points/<point id>      one sealed manifest
 * deleting/<point id>    an empty file: that point is to go
 * journals/<cloud>       what was revoked since, sealed (journal.ts)
 * writers/<number>       who may write (lease.ts)
 * ```
 *
 * It has one writer at a time. Files of other names are nobody's, and stay. Nothing is ever changed in place,
 * but for a piece known to be damaged.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { isId, randomSecret } from '../platform/ids.ts';
import { HOLE } from './chunks.ts';
import { Damaged, PieceBox } from './piece-box.ts';
import type { FilePart, KeptPart, KeptPiece, PieceStore, PlacedFile, Target } from './target.ts';

const FORMAT = 1;
const HEAD = 'repository.json';
const PIECE_NAME = /^[0-9a-f]{64}$/;
/** Pieces of one file on their way at once: bounds memory to as many MiB. */
const AT_ONCE = 4;

/** `repository.json`. */
interface Head {
  readonly format: number;
  readonly repository_id: string;
  /** A check of the repository's key: tells one that is not it from damage. */
  readonly key_check: string;
  /** `nonce (12) · AES-256-GCM(key) · tag (16)`, base64; its key is HKDF-SHA-256 of the recovery key. */
  readonly sealed_key: string;
}

export interface RepositoryKeys {
  /** The repository's own, 32 bytes: opens everything. */
  readonly key: Uint8Array;
  readonly repositoryId: string;
}

/** Where the bytes of one file are. */
export interface StoredBytes {
  readonly sizeBytes: number;
  readonly pieces: readonly string[];
  /** Bytes that were new to the repository, as they are kept. */
  readonly addedBytes: number;
}

export class Repository {
  readonly #target: Target;
  readonly #box: PieceBox;
  readonly #pieces: PieceStore;
  readonly id: string;
  /** The name of a block of a hole, which takes no room where it is restored. */
  readonly holeName: string;
  /** Disks are mostly holes. */
  #keptHole: Promise<KeptPiece> | undefined;
  #suspects: ReadonlySet<string> = new Set();

  constructor(target: Target, { key, repositoryId }: RepositoryKeys) {
    this.#target = target;
    this.#box = new PieceBox(key);
    this.#pieces = target.pieces(key);
    this.id = repositoryId;
    this.holeName = this.#box.nameOf(HOLE);
  }

  /** Makes a repository where there is none; `key`: 32 bytes. Throws when there is one. */
  static async create(
    target: Target,
    { key, recoveryKey }: { readonly key: Uint8Array; readonly recoveryKey: Uint8Array },
  ): Promise<RepositoryKeys> {
    const repositoryId = randomSecret(16).toString('hex');
    const head: Head = {
      format: FORMAT,
      repository_id: repositoryId,
      key_check: checkOf(key),
      sealed_key: sealKey(key, { repositoryId, recoveryKey }).toString('base64'),
    };
    const isNew = await target.create(HEAD, Buffer.from(`${JSON.stringify(head, null, 2)}\n`));
    if (!isNew) throw new Error(`${target.place} holds a repository already`);
    await target.sync();
    return { key, repositoryId };
  }

  /** undefined: there is none. Throws when the one there has another key, or is not of this format. */
  static async find(target: Target, key: Uint8Array): Promise<RepositoryKeys | undefined> {
    const head = await readHead(target);
    if (head === undefined) return undefined;
    if (head.key_check === checkOf(key)) return { key, repositoryId: head.repository_id };
    throw new Error(`${target.place} holds the recovery points of another cloud`);
  }

  /** The repository's key, by the recovery key. Throws when that is another's, or there is no repository. */
  static async unlock(target: Target, recoveryKey: Uint8Array): Promise<RepositoryKeys> {
    const head = await readHead(target);
    if (head === undefined) throw new Error(`${target.place} holds no recovery points of Cloudlet`);
    const { repository_id: repositoryId } = head;
    const sealed = Buffer.from(head.sealed_key, 'base64');
    return { key: openKey(sealed, { repositoryId, recoveryKey }), repositoryId };
  }

  /**
   * Keeps the pieces of a file. `isPacked`: they are dense already. Rejects with what the source or the
   * target throws; what was put stays, for the next try or the sweep.
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
      const place = names.push('') - 1;
      sizeBytes += bytes.length;
      const put = this.#keep(bytes, isPacked)
        .then((kept) => {
          names[place] = kept.name;
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

  /** Pieces will be kept soon: what that takes is begun. */
  prepare(): void {
    this.#pieces.prepare();
  }

  /** As store(), of the next bytes of a file of this host. */
  storePart(part: FilePart, isPacked: boolean): Promise<KeptPart> {
    return this.#pieces.keepPart(part, isPacked);
  }

  /**
   * The bytes of a small file, piece by piece: each is its reader's alone. Throws Damaged, which names the
   * piece.
   */
  async *read(pieces: Iterable<string>): AsyncGenerator<Buffer> {
    for (const name of pieces) yield await this.#pieces.read(name);
  }

  /** Writes a file of this host, whole or not at all. Throws Damaged, and what is said of that file. */
  writeFile(file: PlacedFile, pieces: readonly string[]): Promise<void> {
    return this.#pieces.writeFile(file, pieces);
  }

  /**
   * Reads it to its last byte; what is wrong with it, if anything. `isQuick`: what its seal says is enough.
   */
  async check(piece: string, isQuick = false): Promise<Damaged | undefined> {
    try {
      await this.#pieces.check(piece, isQuick);
      return undefined;
    } catch (error) {
      if (error instanceof Damaged) return error;
      throw error;
    }
  }

  /** Pieces known to be damaged: whoever has their bytes puts them anew. */
  distrust(pieces: ReadonlySet<string>): void {
    this.#suspects = pieces;
    this.#pieces.distrust(pieces);
  }

  isTrusted(piece: string): boolean {
    return !this.#suspects.has(piece);
  }

  /** False when the whole place is gone, or never was: nothing can be said of any piece then. */
  isThere(): Promise<boolean> {
    return this.#target.has(HEAD);
  }

  /**
   * Resolves with the bytes as they are kept. `beforePut` is called when all else is on disk, and may refuse.
   */
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

  /** undefined: there is no such point. Throws Damaged. */
  async getManifest(pointId: string): Promise<{ bytes: Buffer; sealed: Buffer } | undefined> {
    const sealed = await this.#target.get(manifestFile(pointId));
    return sealed && { bytes: this.#box.openManifest(pointId, sealed), sealed };
  }

  /** Replaces the one of that cloud; on disk some time later. */
  async putJournal(cloud: string, bytes: Uint8Array): Promise<void> {
    const file = journalFile(cloud);
    await this.#target.put(file, this.#box.sealManifest(file, bytes));
  }

  /** undefined: there is none. Throws Damaged. */
  async getJournal(cloud: string): Promise<Buffer | undefined> {
    const file = journalFile(cloud);
    const sealed = await this.#target.get(file);
    return sealed && this.#box.openManifest(file, sealed);
  }

  /** Ids of the points whose manifest is there. */
  async points(): Promise<string[]> {
    return this.#idsIn('points');
  }

  /** Ids of those points that were deleted and can be had back. */
  async deleted(): Promise<string[]> {
    return this.#idsIn('deleting');
  }

  async markDeleted(pointId: string): Promise<void> {
    await this.#target.putSynced(`deleting/${pointId}`, Buffer.alloc(0));
  }

  async unmarkDeleted(pointId: string): Promise<void> {
    await this.#target.remove(`deleting/${pointId}`);
    await this.#target.sync();
  }

  /** For good. Its pieces are left to the sweep. */
  async forget(pointIds: readonly string[]): Promise<void> {
    for (const id of pointIds) await this.#target.remove(manifestFile(id));
    await this.#target.sync();
    for (const id of pointIds) await this.#target.remove(`deleting/${id}`);
  }

  /** Names of all pieces, in no order. A copy that somebody made of one, beside it, is none. */
  async *pieces(): AsyncGenerator<string> {
    for await (const file of this.#target.list('pieces')) {
      const name = file.slice(file.lastIndexOf('/') + 1);
      if (PIECE_NAME.test(name) && file === pieceFile(name)) yield name;
    }
  }

  /** Resolves with the bytes that are free now. */
  removePiece(piece: string): Promise<number> {
    return this.#target.remove(pieceFile(piece));
  }

  /** Removes what a writer that was killed had only begun to write; the number of files. */
  async removeUnfinished(): Promise<number> {
    const inPieces = await this.#target.removeUnfinished('pieces');
    return inPieces + (await this.#target.removeUnfinished('points'));
  }

  async #idsIn(folder: string): Promise<string[]> {
    const ids: string[] = [];
    for await (const name of this.#target.list(folder)) ids.push(name.slice(folder.length + 1));
    return ids.filter((id) => isId('drp', id)).sort();
  }

  async #keep(bytes: Uint8Array, isPacked: boolean): Promise<KeptPiece> {
    if (bytes !== HOLE) return this.#pieces.keep(bytes, isPacked);
    const isFirst = this.#keptHole === undefined;
    this.#keptHole ??= this.#pieces.keep(Buffer.from(HOLE), false);
    const kept = await this.#keptHole;
    return isFirst ? kept : { ...kept, addedBytes: 0 };
  }
}

/** In the repository. */
export function pieceFile(name: string): string {
  return `pieces/${name.slice(0, 2)}/${name}`;
}

/** In the repository. */
export function manifestFile(pointId: string): string {
  return `points/${pointId}`;
}

function journalFile(cloud: string): string {
  return `journals/${cloud}`;
}

async function readHead(target: Target): Promise<Head | undefined> {
  const text = (await target.get(HEAD))?.toString('utf8');
  if (text === undefined) return undefined;
  let head: Partial<Head>;
  try {
    head = JSON.parse(text) as Partial<Head>;
  } catch {
    throw new Error(`${HEAD} in ${target.place} is damaged: it is not JSON`);
  }
  if (head.format !== FORMAT) {
    throw new Error(
      `${target.place} has format ${head.format}, this Cloudlet knows ${FORMAT}: use a newer one`,
    );
  }
  if (typeof head.repository_id !== 'string' || typeof head.sealed_key !== 'string') {
    throw new Error(`${HEAD} in ${target.place} is damaged: a member is missing`);
  }
  return head as Head;
}

function checkOf(key: Uint8Array): string {
  return createHmac('sha256', key).update('cloudlet repository').digest('hex').slice(0, 32);
}

interface Lock {
  readonly repositoryId: string;
  readonly recoveryKey: Uint8Array;
}

function sealKey(key: Uint8Array, lock: Lock): Buffer {
  const nonce = randomSecret(12);
  const cipher = createCipheriv('aes-256-gcm', slotKey(lock), nonce);
  const sealed = Buffer.concat([cipher.update(key), cipher.final()]);
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]);
}

function openKey(sealed: Buffer, lock: Lock): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', slotKey(lock), sealed.subarray(0, 12));
  decipher.setAuthTag(sealed.subarray(-16));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
  } catch {
    throw new Error('the recovery key is not the one of this repository');
  }
}

/** The recovery key is as random as a key can be: nothing is gained by making this slow. */
function slotKey({ repositoryId, recoveryKey }: Lock): Buffer {
  return Buffer.from(hkdfSync('sha256', recoveryKey, repositoryId, 'cloudlet recovery key', 32));
}
