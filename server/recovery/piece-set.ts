/** Names of pieces, millions perhaps: of each, half is kept, which is enough to tell them apart. */
export class PieceSet {
  readonly #names = new Set<string>();

  /** False when it was there. */
  add(piece: string): boolean {
    const before = this.#names.size;
    this.#names.add(short(piece));
    return this.#names.size > before;
  }

  has(piece: string): boolean {
    return this.#names.has(short(piece));
  }

  /** False when it was not there. */
  delete(piece: string): boolean {
    return this.#names.delete(short(piece));
  }

  get size(): number {
    return this.#names.size;
  }
}

/** 16 bytes, as a string of its own: a part of the hex digits would keep all of them in memory. */
function short(piece: string): string {
  return Buffer.from(piece, 'hex').toString('latin1', 0, 16);
}
