/** The speed of the disk: the latency of one small durable write, and the throughput of a long one. */
import { randomBytes } from 'node:crypto';
import { closeSync, fdatasyncSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { childInput } from '../child.ts';

const SMALL_WRITES = 200;
const LONG_BYTES = 256 * 2 ** 20;
const { path } = childInput<{ path: string }>();

const file = openSync(path, 'wx');
const block = randomBytes(4096);
const latencies: number[] = [];
for (let write = 0; write < SMALL_WRITES; write++) {
  const began = performance.now();
  writeSync(file, block);
  fdatasyncSync(file);
  latencies.push(performance.now() - began);
}
latencies.sort((a, b) => a - b);

const piece = randomBytes(2 ** 20);
const began = performance.now();
for (let written = 0; written < LONG_BYTES; written += piece.length) writeSync(file, piece);
fdatasyncSync(file);
const bytesPerSecond = (LONG_BYTES * 1000) / (performance.now() - began);
closeSync(file);
unlinkSync(path);
const at = (share: number) => latencies[Math.floor(SMALL_WRITES * share)] ?? Number.NaN;
console.log(JSON.stringify({ medianMs: at(0.5), p99Ms: at(0.99), bytesPerSecond }));
