/** Bytes on their way to a client that may be slow. */
import { once } from 'node:events';
import type { Writable } from 'node:stream';

/** Resolves when more may be written, or the stream has closed. */
export async function taken(stream: Writable, bytes: Uint8Array): Promise<void> {
  if (bytes.length === 0 || stream.write(bytes)) return;
  // The listeners are removed after each wait: a slow client causes thousands of waits.
  const wait = new AbortController();
  const { signal } = wait;
  await Promise.race([once(stream, 'drain', { signal }), once(stream, 'close', { signal })]).finally(() =>
    wait.abort(),
  );
}
