/**
 * Where recovery points are kept: a place for named files that outlives this host. Names are
 * `<folder>/<file>` of a-z, 0-9, "-" and ".".
 */
export interface TargetFile {
  readonly name: string;
  readonly sizeBytes: number;
}

export interface Target {
  /** For people: a path. */
  readonly place: string;
  /**
   * Keeps the bytes whole or not at all, in the place of an earlier file of the name. On disk only after
   * sync(). Throws AppError `out_of_space`, or an Error when the target is gone.
   */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** undefined: there is none. Throws when it is there and cannot be read. */
  get(name: string): Promise<Buffer | undefined>;
  has(name: string): Promise<boolean>;
  /** Files of a folder and the folders in it, in no order. */
  list(folder: string): AsyncIterable<TargetFile>;
  /** Fine when there is none. */
  remove(name: string): Promise<void>;
  /** Resolves when all that was put is on disk. */
  sync(): Promise<void>;
}
