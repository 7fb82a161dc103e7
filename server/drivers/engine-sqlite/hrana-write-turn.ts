/**
 * Who may write: SQLite has one writer, and waiting inside SQLite would hold up the very stream that could
 * end the wait. So streams wait here, in the order they came.
 */

interface Waiting<Owner> {
  readonly owner: Owner;
  readonly resolve: (got: boolean) => void;
}

export class WriteTurn<Owner extends object> {
  #holder: Owner | undefined;
  readonly #waiting: Waiting<Owner>[] = [];

  isHeldBy(owner: Owner): boolean {
    return this.#holder === owner;
  }

  /** True when the turn is `owner`'s now. */
  take(owner: Owner): boolean {
    this.#holder ??= owner;
    return this.#holder === owner;
  }

  /** False when it did not come in that time, or the signal was given. */
  wait(owner: Owner, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = () => waiting.resolve(false);
      const timer = setTimeout(leave, ms);
      const waiting: Waiting<Owner> = {
        owner,
        resolve: (got) => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', leave);
          const place = this.#waiting.indexOf(waiting);
          if (place >= 0) this.#waiting.splice(place, 1);
          resolve(got);
        },
      };
      this.#waiting.push(waiting);
      if (signal?.aborted) leave();
      else signal?.addEventListener('abort', leave);
    });
  }

  /** Gives the turn to the next who waits; nothing when it is not `owner`'s. */
  release(owner: Owner): void {
    if (this.#holder !== owner) return;
    const next = this.#waiting[0];
    this.#holder = next?.owner;
    next?.resolve(true);
  }
}
