/** A driver's part in handling pieces: stores and reads their sealed bytes. */
export interface PieceStorage {
  /** Pieces that a thread stores, or reads ahead for a file, at once: bounds its memory. */
  readonly atOnce: number;
  /** Reads of a piece before it counts as damaged: bytes may be altered on their way. */
  readonly readings: number;
  has(piece: string): boolean | Promise<boolean>;
  /** Stores it completely or not at all; returns the stored length. `parts`: joined, the sealed piece. */
  put(piece: string, parts: readonly Buffer[]): number | Promise<number>;
  /** The sealed piece, owned by the caller. Throws Damaged. */
  get(piece: string): Buffer | Promise<Buffer>;
  /** Renews its lock, where pieces are locked. */
  renewLock(piece: string): void | Promise<void>;
}

/** Setup of a thread; drivers add more. */
export interface PieceSetup {
  /** The repository's key, 32 bytes. */
  readonly key: Uint8Array;
  /** Pieces to be stored again. */
  readonly suspects: ReadonlySet<string>;
}
