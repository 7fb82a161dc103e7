/**
 * Where recovery points are kept: a place for named files that outlives this host. Names are
 * `<folder>/<file>` of a-z, 0-9, "-" and ".".
 */
export interface Target {
  /** For people: a path. */
  readonly place: string;
  /**
   * Keeps the bytes whole or not at all, in the place of an earlier file of the name. On disk only after
   * sync(). Throws AppError `out_of_space`, or an Error when the target is gone.
   */
  put(name: string, bytes: Uint8Array): Promise<void>;
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
