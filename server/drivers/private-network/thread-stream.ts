/** One end of a byte stream between two threads, with at most one window in flight. */
import { Duplex } from 'node:stream';
import type { MessagePort } from 'node:worker_threads';

/** Bytes sent and not yet read at the other end. */
const WINDOW_BYTES = 128 * 1024;
/** A message counts at least this many bytes: its fixed cost. */
const LEAST_BYTES = 256;

type Message =
  | { readonly bytes: Uint8Array }
  | { readonly read: number }
  | { readonly end: true }
  | { readonly reset: true };

/** Ends its two directions separately, like TCP. The other end holds the other port. */
export class ThreadStream extends Duplex {
  readonly #port: MessagePort;
  #underWay = 0;
  #unread = 0;
  #blocked: (() => void) | null = null;
  #hasEnded = false;

  constructor(port: MessagePort) {
    // Only the window limits unread data.
    super({ allowHalfOpen: true, readableHighWaterMark: 1 });
    this.#port = port;
    port.on('message', (message: Message) => this.#receive(message));
    port.on('close', () => {
      if (!this.#hasEnded || !this.writableEnded) this.destroy();
    });
  }

  override _read(): void {
    if (this.#unread === 0) return;
    this.#post({ read: this.#unread });
    this.#unread = 0;
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    // A copy of these bytes alone: cloning would include their whole pool of buffers.
    const bytes = new Uint8Array(chunk);
    this.#port.postMessage({ bytes } satisfies Message, [bytes.buffer]);
    this.#underWay += weightOf(bytes);
    if (this.#underWay < WINDOW_BYTES) done();
    else this.#blocked = done;
  }

  override _final(done: () => void): void {
    this.#post({ end: true });
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    if (!(this.readableEnded && this.writableFinished)) this.#post({ reset: true });
    this.#port.close();
    this.#blocked = null;
    done(error);
  }

  #post(message: Message): void {
    this.#port.postMessage(message);
  }

  #receive(message: Message): void {
    if ('bytes' in message) {
      this.#unread += weightOf(message.bytes);
      this.push(message.bytes);
    } else if ('read' in message) {
      this.#underWay -= message.read;
      const go = this.#underWay < WINDOW_BYTES ? this.#blocked : null;
      if (go !== null) this.#blocked = null;
      go?.();
    } else if ('end' in message) {
      this.#hasEnded = true;
      this.push(null);
    } else this.destroy();
  }
}

function weightOf({ length }: Uint8Array): number {
  return Math.max(length, LEAST_BYTES);
}
