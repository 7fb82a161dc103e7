/** Lets only so many at once; the others wait in the order in which they came. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(atOnce: number) {
    this.#free = atOnce;
  }

  /** Resolves with what `work` resolves with. Throws the signal's reason when that comes before its turn. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#turn(signal);
    try {
      return await work();
    } finally {
      this.#free++;
      const [next] = this.#waiting;
      next?.();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = () => {
        leave();
        this.#free--;
        resolve();
      };
      const giveUp = () => {
        leave();
        reject(signal.reason);
      };
      const leave = () => {
        this.#waiting.delete(take);
        signal.removeEventListener('abort', giveUp);
      };
      if (signal.aborted) reject(signal.reason);
      else if (this.#free > 0) take();
      else {
        this.#waiting.add(take);
        signal.addEventListener('abort', giveUp);
      }
    });
  }
}
