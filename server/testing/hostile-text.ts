/** Processor time of texts that are made to take long. */
import assert from 'node:assert/strict';

/** Characters of a large text, and how many small ones are as long together. */
const SIZE = 240_000;
const MANY = 16;
/** A large text takes `MANY` times as long as small ones if the time grows with the square of its length. */
const MOST_TIMES = 6;
/** Collections of garbage and the like, ms. */
const NOISE_MS = 100;

/** Asserts that the time of `take` grows with the length of a text, not with its square. */
export async function assertLinear(
  textOf: (size: number) => string,
  take: (text: string) => Promise<unknown>,
): Promise<void> {
  const small = textOf(SIZE / MANY);
  // Compiles what runs.
  await take(small);
  const manyMs = await cpuMs(() => take(small.repeat(MANY)));
  const largeMs = await cpuMs(() => take(textOf(SIZE)));
  assert.ok(largeMs <= MOST_TIMES * manyMs + NOISE_MS, `${largeMs} ms, in parts ${manyMs} ms`);
}

async function cpuMs(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
