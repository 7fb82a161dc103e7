/**
 * Queue of writers: SQLite has one writer, and waiting inside SQLite would block the stream that
 * could end the wait. So streams wait here, in order of arrival.
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

  /** True when `owner` has the turn. */
  take(owner: Owner): boolean {
    this.#holder ??= owner;
    return this.#holder === owner;
  }

  /** False on timeout, or when the signal aborts. */
  wait(owner: Owner, ms: number, signal: AbortSignal | undefined): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = () => waiting.resolve(false);
      const timer = setTimeout(leave, ms);
      const waiting: Waiting<Owner> = {
        owner,
        resolve: (got) => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', leave);
          const index = this.#waiting.indexOf(waiting);
          if (index >= 0) this.#waiting.splice(index, 1);
          resolve(got);
        },
      };
      this.#waiting.push(waiting);
      if (signal?.aborted) leave();
      else signal?.addEventListener('abort', leave);
    });
  }

  /** Passes the turn to the next in the queue; does nothing if `owner` does not have it. */
  release(owner: Owner): void {
    if (this.#holder !== owner) return;
    const next = this.#waiting[0];
    this.#holder = next?.owner;
    next?.resolve(true);
  }
}
