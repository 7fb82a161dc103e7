/** When an account has stored so many rows more that its oldest are to be removed: not with every row. */
export class TrimTurns {
  readonly #every: number;
  readonly #added = new Map<number, number>();

  /** `kept`: rows that an account may have; it has a hundredth more at most. */
  constructor(kept: number) {
    this.#every = Math.max(1, Math.floor(kept / 100));
  }

  /** To be asked once for each row. The first since the start counts as due: nobody knows what was before. */
  isDue(accountId: number): boolean {
    const added = this.#added.get(accountId) ?? 0;
    this.#added.set(accountId, (added + 1) % this.#every);
    return added === 0;
  }
}
