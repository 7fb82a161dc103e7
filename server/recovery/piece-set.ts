/**
 * A set of piece names, possibly millions: half of each name is kept, which is enough to distinguish them.
 */
export class PieceSet {
  readonly #names = new Set<string>();

  /** False if it was in the set already. */
  add(piece: string): boolean {
    const before = this.#names.size;
    this.#names.add(short(piece));
    return this.#names.size > before;
  }

  has(piece: string): boolean {
    return this.#names.has(short(piece));
  }

  /** False if it was not in the set. */
  delete(piece: string): boolean {
    return this.#names.delete(short(piece));
  }

  get size(): number {
    return this.#names.size;
  }
}

/** 16 bytes as a string of its own: a substring would keep all hex digits in memory. */
function short(piece: string): string {
  return Buffer.from(piece, 'hex').toString('latin1', 0, 16);
}
