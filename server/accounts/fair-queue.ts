/**
 * Costly work, few at a time, shared fairly among those who ask for it (max-min fairness): sources take
 * turns, and when the queue is full the one that waits for most gives up its newest place. So whoever floods
 * waits for itself, and one request from elsewhere is served after at most one of each other source.
 */

interface Waiter {
  readonly begin: () => void;
  readonly refuse: (error: Error) => void;
}

interface FairQueueLimits {
  readonly running: number;
  readonly waiting: number;
  /** What a request is told that has no place. */
  readonly refusal: () => Error;
}

export class FairQueue {
  readonly #limits: FairQueueLimits;
  /** By source, in the order of their turns; none is empty. */
  readonly #queues = new Map<string, Waiter[]>();
  #waiting = 0;
  #running = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  /** Does `work` when the turn of `source` has come. Throws the refusal when it has no place. */
  async run<T>(source: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limits.running) this.#running++;
    else await this.#wait(source);
    try {
      return await work();
    } finally {
      // The one that leaves hands its place over, so #running does not change.
      const next = this.#next();
      if (next) next.begin();
      else this.#running--;
    }
  }

  #wait(source: string): Promise<void> {
    const own = this.#queues.get(source) ?? [];
    if (this.#waiting >= this.#limits.waiting) this.#makeRoom(own.length);
    const turn = new Promise<void>((begin, refuse) => own.push({ begin, refuse }));
    this.#queues.set(source, own);
    this.#waiting++;
    return turn;
  }

  /** For one more of a source of which `own` wait. */
  #makeRoom(own: number): void {
    let longest: Waiter[] = [];
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue;
    if (longest.length <= own + 1) throw this.#limits.refusal();
    longest.pop()?.refuse(this.#limits.refusal());
    this.#waiting--;
  }

  #next(): Waiter | undefined {
    const [first] = this.#queues;
    if (first === undefined) return undefined;
    const [source, queue] = first;
    const waiter = queue.shift();
    this.#waiting--;
    this.#queues.delete(source);
    if (queue.length > 0) this.#queues.set(source, queue);
    return waiter;
  }
}
