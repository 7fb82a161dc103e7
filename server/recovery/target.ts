/**
 * Where recovery points are kept: a place for named files that outlives this host. Names are
 * `<folder>/<file>` of a-z, 0-9, "-" and ".".
 */
export interface Target {
  /** Its pieces, named and sealed under the key of the repository, 32 bytes. */
  pieces(key: Uint8Array): PieceStore;
  /** For people: a path. */
  readonly place: string;
  /**
   * Keeps the bytes whole or not at all, in the place of an earlier file of the name. On disk only after
   * sync(). Throws AppError `out_of_space`, or an Error when the target is gone.
   */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** As put(), and resolves when this file is on disk: one alone is so sooner than by sync(). */
  putSynced(name: string, bytes: Uint8Array): Promise<void>;
  /** False when there is a file of that name already: of several who try, one succeeds. */
  create(name: string, bytes: Uint8Array): Promise<boolean>;
  /** undefined: there is none. Throws when it is there and cannot be read. */
  get(name: string): Promise<Buffer | undefined>;
  has(name: string): Promise<boolean>;
  /** Names of the files of a folder and the folders in it, in no order. */
  list(folder: string): AsyncIterable<string>;
  /** Resolves with its length, 0 when there is none. */
  remove(name: string): Promise<number>;
  /** Removes from a folder what a put() that was killed left. Nobody may put anything there meanwhile. */
  removeUnfinished(folder: string): Promise<number>;
  /** Resolves when all that was put is on disk. */
  sync(): Promise<void>;
}

/** The pieces of a repository. All work on them is done beside the event loop. */
export interface PieceStore {
  /** There will be work soon. */
  prepare(): void;
  /** Whoever has the bytes of one of these puts it anew: they are known to be damaged. */
  distrust(pieces: ReadonlySet<string>): void;
  /** Takes the bytes: nobody may use them any more. */
  keep(bytes: Uint8Array, isPacked: boolean): Promise<KeptPiece>;
  /** As keep(), of the next bytes of a file of this host, in blocks of one length. */
  keepPart(part: FilePart, isPacked: boolean): Promise<KeptPart>;
  /** Throws Damaged. */
  read(piece: string): Promise<Buffer>;
  /**
   * Writes a file of this host, whole or not at all: these pieces, joined; blocks of zeros become holes.
   * Throws Damaged, and what the file system says of that file.
   */
  writeFile(file: PlacedFile, pieces: readonly string[]): Promise<void>;
  /** Throws Damaged. `isQuick`: what its seal says is enough. */
  check(piece: string, isQuick: boolean): Promise<void>;
}

export interface KeptPiece {
  readonly name: string;
  /** Bytes that were new, as they are kept. */
  readonly addedBytes: number;
}

export interface PlacedFile {
  /** Absolute; its folder is there. */
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
}

export interface FilePart {
  readonly path: string;
  /** Where it begins: a multiple of the length of a block. */
  readonly from: number;
}

/** `unreadable`: why the file cannot be read; null: there is none, or none any more. */
export type KeptPart =
  | {
      readonly pieces: readonly string[];
      readonly bytes: number;
      readonly addedBytes: number;
      /** Nothing is behind it. */
      readonly isEnd: boolean;
    }
  | { readonly unreadable: string | null };
