/**
 * The recovery target port: storage for named files that outlives this host. Names are `<folder>/<file>` of
 * a-z, 0-9, "-" and ".".
 */
export interface Target {
  /** The store of pieces, named and sealed under the repository's key, 32 bytes. */
  pieces(key: Uint8Array): PieceStore;
  /** Path, or URL without credentials, for people. */
  readonly location: string;
  /**
   * Stores the bytes completely or not at all, replacing a file of that name. Durable only after
   * sync(). Throws AppError `out_of_space`, or an Error if the target is gone.
   */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** Same as put(), and resolves when this file is durable, which is faster than sync() for a single file. */
  putSynced(name: string, bytes: Uint8Array): Promise<void>;
  /** False if the file exists: of several concurrent callers, one succeeds. */
  create(name: string, bytes: Uint8Array): Promise<boolean>;
  /** undefined: none. Throws when the file cannot be read. */
  get(name: string): Promise<Buffer | undefined>;
  has(name: string): Promise<boolean>;
  /** Names of the files and folders in a folder, unordered. */
  list(folder: string): AsyncIterable<string>;
  /**
   * The result of removing a file: it is gone; or the target keeps it as an old version, `hidden`;
   * or the credentials may not remove it, `denied`. `gone` until known.
   */
  readonly removal: Removal;
  /** Resolves with the bytes freed, 0 if there was no file. Throws NotRemovable. */
  remove(name: string): Promise<number>;
  /** Removes unfinished files of killed put() calls. No put() may run at the same time. */
  removeUnfinished(folder: string): Promise<number>;
  /** Resolves when all stored files are durable. */
  sync(): Promise<void>;
  /**
   * Days for which a new point cannot be removed, as far as known; 0: it can be removed. See
   * piece-locks.ts.
   */
  readonly lockDays: number;
  /** Extends the lock of a file to that of a new piece. */
  renewLock(name: string): Promise<void>;
  /**
   * Space of the target, for a data directory at that path. Rejects with a TargetProblem, or an Error, when
   * points cannot be stored there.
   */
  inspect(dataDir: string): Promise<TargetSpace>;
  /** Cloudlet is stopping: fail instead of waiting. */
  hurry(): void;
}

export interface TargetSpace {
  /** The target is on the disk of the data directory. */
  readonly isOnDataDisk: boolean;
  /** null: unknown. */
  readonly freeBytes: number | null;
}

export type Removal = 'gone' | 'hidden' | 'denied';

/** The credentials may not remove files; the operator of the target does. */
export class NotRemovable extends Error {}

/** Why points cannot be stored in a target, and how to fix it. */
export class TargetProblem extends Error {
  readonly fix: string;

  constructor(message: string, fix: string, cause?: unknown) {
    super(message, { cause });
    this.fix = fix;
  }
}

/** The pieces of a repository. All work on them runs off the event loop. */
export interface PieceStore {
  /** Warms up the workers. */
  prepare(): void;
  /** Marks pieces as damaged, so that keep() stores them again. */
  distrust(pieces: ReadonlySet<string>): void;
  /** Takes ownership of the bytes. */
  keep(bytes: Uint8Array, isPacked: boolean): Promise<KeptPiece>;
  /** Stores the next bytes of a local file, in blocks of equal length. */
  keepPart(part: FilePart, isPacked: boolean): Promise<KeptPart>;
  /** Throws Damaged. */
  read(piece: string): Promise<Buffer>;
  /**
   * Writes a file on this host, completely or not at all: the pieces, joined; blocks of zeros
   * become holes. Throws Damaged, and errors of that file.
   */
  writeFile(file: PlacedFile, pieces: readonly string[]): Promise<void>;
  /** Throws Damaged. `isQuick`: checks the seal only. */
  check(piece: string, isQuick: boolean): Promise<void>;
  /** Extends the lock to that of a new piece, if the target locks pieces. */
  renewLock(piece: string): Promise<void>;
}

export interface KeptPiece {
  readonly name: string;
  /** Newly stored bytes, as stored. */
  readonly addedBytes: number;
}

export interface PlacedFile {
  /** Absolute path; its folder exists. */
  readonly path: string;
  /** Permission bits. */
  readonly mode: number;
}

export interface FilePart {
  readonly path: string;
  /** Start offset: a multiple of the block length. */
  readonly from: number;
}

/** `unreadable`: why the file cannot be read; null: it does not exist. */
export type KeptPart =
  | {
      readonly pieces: readonly string[];
      readonly bytes: number;
      readonly addedBytes: number;
      /** True at the end of the file. */
      readonly isEnd: boolean;
    }
  | { readonly unreadable: string | null };
