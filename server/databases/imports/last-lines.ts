/** Lines of the last rows that were read. A file has any number of rows, and only the last can be refused. */
export class LastLines {
  readonly #lines: number[] = [];
  readonly #kept: number;
  #count = 0;

  /** `kept`: rows whose lines are known. */
  constructor(kept: number) {
    this.#kept = kept;
  }

  /** Rows so far. */
  get count(): number {
    return this.#count;
  }

  push(line: number): void {
    this.#lines[this.#count++ % this.#kept] = line;
  }

  /** The line of a row, by its index among all; 0: it is no longer known. */
  at(index: number): number {
    const isKept = index >= 0 && index < this.#count && index >= this.#count - this.#kept;
    return isKept ? (this.#lines[index % this.#kept] ?? 0) : 0;
  }
}
