/** Counts of requests to S3, in memory that all threads share. */

const NAMES = ['requests', 'retries', 'errors', 'microseconds', 'sentBytes', 'receivedBytes'] as const;
type Name = (typeof NAMES)[number];

export class S3Counters {
  readonly memory: SharedArrayBuffer;
  readonly #values: BigInt64Array;

  constructor(memory = new SharedArrayBuffer(NAMES.length * 8)) {
    this.memory = memory;
    this.#values = new BigInt64Array(memory);
  }

  add(name: Name, amount: number): void {
    Atomics.add(this.#values, NAMES.indexOf(name), BigInt(Math.round(amount)));
  }

  read(name: Name): number {
    return Number(Atomics.load(this.#values, NAMES.indexOf(name)));
  }
}
