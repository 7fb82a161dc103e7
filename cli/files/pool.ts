/** Limits concurrency. */
export class Pool {
  readonly #size: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(size: number) {
    this.#size = size;
  }

  /** Runs `work` when a slot is free, and returns its result. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#size) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#running += 1;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}

/** Runs `work` on each item, at most `size` at a time; reads an item only when there is room for it. */
export async function forEachOf<T>(
  items: AsyncIterable<T> | Iterable<T>,
  size: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const running = new Set<Promise<void>>();
  let failure: { readonly error: unknown } | undefined;
  for await (const item of items) {
    const one: Promise<void> = work(item)
      .catch((error: unknown) => {
        failure ??= { error };
      })
      .finally(() => running.delete(one));
    running.add(one);
    if (running.size >= size) await Promise.race(running);
    if (failure !== undefined) break;
  }
  await Promise.all(running);
  if (failure !== undefined) throw failure.error;
}
