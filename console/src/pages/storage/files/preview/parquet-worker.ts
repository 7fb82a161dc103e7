/**
 * Reads a Parquet file in a worker that gets its bytes from the page: a hostile file cannot block the page.
 */

import type { FromWorker, ToWorker } from './parquet-messages.ts';
import { ParquetRefusal, readParquet } from './parquet-reading.ts';

const waiting = new Map<number, (bytes: ArrayBuffer) => void>();
let reads = 0;

const say = (message: FromWorker) => postMessage(message);

function read(start: number, end: number): Promise<ArrayBuffer> {
  return new Promise((resolve) => {
    const id = ++reads;
    waiting.set(id, resolve);
    say({ kind: 'read', id, start, end });
  });
}

addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'bytes') {
    waiting.get(data.id)?.(data.bytes);
    waiting.delete(data.id);
    return;
  }
  readParquet({ size: data.size, read }).then(
    (table) => say({ kind: 'table', table }),
    (error: unknown) =>
      say({ kind: 'refused', reason: error instanceof ParquetRefusal ? error.reason : 'damaged' }),
  );
});
