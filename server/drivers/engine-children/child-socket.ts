/** The child's end of the socket: receives calls, runs one at a time, sends answers. */
import type { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '../../platform/clock.ts';
import { type ChildCall, type Handler, TURN_MS } from './child-call.ts';
import { encodeFrame, type FrameHead, FrameReader, NO_BODY } from './frames.ts';

/** Answers sent in one batch while the next calls run, so that this process and Cloudlet work in parallel. */
const SENT_TOGETHER = 4;

interface Running {
  readonly abort: AbortController;
  /** Called when the part in flight was passed on. */
  passedOn: ((answer: Uint8Array) => void) | null;
}

export interface ChildSocketOptions {
  readonly handlers: Readonly<Record<string, Handler>>;
  /** DurableLog.flush(); null: nothing to wait for. */
  flush(): Promise<void> | null;
  /** The error sent instead of an answer. */
  describe(error: unknown): Readonly<Record<string, unknown>>;
}

export class ChildSocket {
  readonly #socket: Socket;
  readonly #options: ChildSocketOptions;
  readonly #running = new Map<number, Running>();
  readonly #waiting: { readonly head: FrameHead; readonly body: Buffer }[] = [];
  #isDraining = false;

  constructor(socket: Socket, options: ChildSocketOptions) {
    this.#socket = socket;
    this.#options = options;
    const reader = new FrameReader((head, body) => this.#take(head, body));
    socket.on('data', (piece: Buffer) => reader.push(piece));
    // Cloudlet has ended: there is no receiver for an answer.
    socket.on('close', () => process.exit(0));
    socket.on('error', () => process.exit(0));
  }

  /** Whether calls are unanswered. */
  get isBusy(): boolean {
    return this.#running.size > 0;
  }

  send(head: FrameHead, body: Uint8Array = NO_BODY): void {
    const [start, rest] = encodeFrame(head, body);
    this.#socket.cork();
    this.#socket.write(start);
    if (rest.length > 0) this.#socket.write(rest);
    // Answers of one event loop turn are sent together: sending costs as much as a small statement.
    process.nextTick(() => this.#socket.uncork());
  }

  #take(head: FrameHead, body: Buffer): void {
    const { id, kind } = head;
    if (kind === 'ping') this.send({ id, pong: true });
    else if (kind === 'ack') this.#running.get(id)?.passedOn?.(body);
    else if (kind === 'cancel') this.#running.get(id)?.abort.abort();
    else {
      this.#running.set(id, { abort: new AbortController(), passedOn: null });
      this.#waiting.push({ head, body });
      if (!this.#isDraining) void this.#drain();
    }
  }

  /** Yields between calls, so that many short calls do not look like a long one. */
  async #drain(): Promise<void> {
    this.#isDraining = true;
    let since = systemClock.monotonic();
    let count = 0;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      void this.#answer(next.head, next.body);
      if (++count % SENT_TOGETHER === 0) await new Promise<void>((resolve) => process.nextTick(resolve));
      if (systemClock.monotonic() - since < TURN_MS) continue;
      await turn();
      since = systemClock.monotonic();
    }
    this.#isDraining = false;
  }

  async #answer(head: FrameHead, body: Buffer): Promise<void> {
    const { id } = head;
    const running = this.#running.get(id) as Running;
    const { signal } = running.abort;
    try {
      const handler = this.#options.handlers[String(head.kind)];
      if (handler === undefined) throw new Error(`unknown kind of call: ${String(head.kind)}`);
      signal.throwIfAborted();
      if (head.tell === true) {
        this.send({ id, begun: true });
        // It must be sent before a statement occupies this thread, perhaps forever.
        await turn();
      }
      const part: ChildCall['part'] = (more, bytes) =>
        this.#part(running, { ...more, id, part: true }, bytes);
      const reply = await handler({ head, body, signal, part });
      await this.#flush();
      this.send({ ...reply.head, id }, reply.body);
    } catch (error) {
      await this.#flush();
      this.send({ id, error: this.#options.describe(error) });
    } finally {
      this.#running.delete(id);
    }
  }

  async #part(running: Running, head: FrameHead, body?: Uint8Array): Promise<Uint8Array> {
    await this.#flush();
    const { signal } = running.abort;
    const { promise, resolve } = Promise.withResolvers<Uint8Array>();
    running.passedOn = resolve;
    signal.addEventListener('abort', () => resolve(NO_BODY), { once: true });
    signal.throwIfAborted();
    this.send(head, body);
    const answer = await promise;
    running.passedOn = null;
    signal.throwIfAborted();
    return answer;
  }

  async #flush(): Promise<void> {
    try {
      await this.#options.flush();
    } catch (error) {
      process.stderr.write(`writing the log failed: ${(error as Error).message}\n`);
      process.exit(1);
    }
  }
}
