/** Where sealed pieces are stored: what a thread that works on them needs of a driver. */
export interface PiecePlace {
  /** Pieces that a thread stores, or reads ahead for a file, at once; bounds its memory to as many MiB, twice. */
  readonly atOnce: number;
  /** Reads of a piece before it counts as damaged: bytes may be altered on their way. */
  readonly readings: number;
  has(piece: string): boolean | Promise<boolean>;
  /** Stores it completely or not at all; the length stored. `parts`: joined, the sealed piece. */
  put(piece: string, parts: readonly Buffer[]): number | Promise<number>;
  /** The sealed piece, owned by the caller. Throws Damaged. */
  get(piece: string): Buffer | Promise<Buffer>;
}

/** What a thread is started with, besides what its driver needs. */
export interface PieceSetup {
  /** The repository's key, 32 bytes. */
  readonly key: Uint8Array;
  /** Pieces that are to be stored anew. */
  readonly suspects: ReadonlySet<string>;
}
