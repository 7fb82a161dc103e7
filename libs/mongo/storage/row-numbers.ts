/** A set of row numbers: a bit for each, for reads that meet every document of a large collection. */

const BITS = 4096;

export class RowNumbers {
  readonly #chunks = new Map<number, Uint8Array>();

  /** Whether it was absent. */
  add(rowNumber: number): boolean {
    const at = Math.floor(rowNumber / BITS);
    const chunk = this.#chunks.get(at) ?? new Uint8Array(BITS / 8);
    this.#chunks.set(at, chunk);
    const [byte, bit] = [(rowNumber % BITS) >> 3, 1 << (rowNumber & 7)];
    const isNew = ((chunk[byte] as number) & bit) === 0;
    chunk[byte] = (chunk[byte] as number) | bit;
    return isNew;
  }
}
