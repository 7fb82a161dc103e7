/** A client of QMP, QEMU's control protocol: one JSON object a line, over a unix socket. */
import type { Socket } from 'node:net';
import { patienceMs } from '../../platform/host/host-facts.ts';

export type QmpFailure = 'closed' | 'timeout' | 'refused';

export class QmpError extends Error {
  readonly failure: QmpFailure;

  /** `refused`: QEMU answered with an error. */
  constructor(failure: QmpFailure, message: string) {
    super(message);
    this.name = 'QmpError';
    this.failure = failure;
  }
}

export interface QmpEvent {
  readonly name: string;
  readonly data: Readonly<Record<string, unknown>>;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: QmpError) => void;
  readonly timer: NodeJS.Timeout;
}

/** The longest answer of the commands used here is under 64 KiB; a longer one is not from QEMU. */
const MAX_LINE_BYTES = 4 * 1024 * 1024;
/** Measured on a quiet host. */
const TIMEOUT_MS = 5000;

/**
 * QEMU reports missing statistics as 2^64 - 1, which a number cannot represent; they become null.
 */
function honest(_key: string, value: unknown): unknown {
  return typeof value === 'number' && value >= 2 ** 63 ? null : value;
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

interface OpenOptions {
  readonly timeoutMs?: number;
  readonly onEvent?: (event: QmpEvent) => void;
  readonly along?: (client: QmpClient) => Promise<void>;
}

export class QmpClient {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, Waiting>();
  readonly #greeting = Promise.withResolvers<void>();
  #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #nextId = 1;
  #isClosed = false;
  #onEvent: (event: QmpEvent) => void = () => {};
  #onClose: () => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#greeting.promise.catch(() => {});
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    // An error is followed by `close`, which is handled.
    socket.on('error', () => {});
    socket.on('close', () => this.#end());
  }

  /**
   * Performs greeting and capabilities on a connected socket. Rejects with a QmpError after
   * `timeoutMs` (a socket that serves another client sends no greeting), and closes it. `along` may
   * send first commands, without waiting for the capabilities; if it rejects, so does open().
   */
  static async open(
    socket: Socket,
    {
      timeoutMs = patienceMs(TIMEOUT_MS),
      onEvent = (_event: QmpEvent) => {},
      along = async (_client: QmpClient) => {},
    }: OpenOptions = {},
  ): Promise<QmpClient> {
    const client = new QmpClient(socket);
    client.#onEvent = onEvent;
    const timer = setTimeout(
      () => client.#greeting.reject(new QmpError('timeout', 'no greeting from QMP')),
      timeoutMs,
    );
    try {
      const capabilities = client.command('qmp_capabilities', {}, timeoutMs);
      await Promise.all([client.#greeting.promise, capabilities, along(client)]);
      return client;
    } catch (error) {
      client.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** One listener, called once, also when it is closed already. */
  onClose(listener: () => void): void {
    this.#onClose = listener;
    if (this.#isClosed) listener();
  }

  /**
   * The `return` of the command. Rejects with a QmpError; after a timeout, a late answer is
   * discarded.
   */
  command(name: string, args: Readonly<Record<string, unknown>> = {}, timeoutMs = patienceMs(TIMEOUT_MS)) {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    if (this.#isClosed) {
      reject(new QmpError('closed', `QMP is closed: ${name}`));
      return promise;
    }
    const id = this.#nextId++;
    const timer = setTimeout(() => {
      this.#waiting.delete(id);
      reject(new QmpError('timeout', `no answer from QMP to ${name}`));
    }, timeoutMs);
    this.#waiting.set(id, { resolve, reject, timer });
    this.#socket.write(`${JSON.stringify({ execute: name, arguments: args, id })}\n`);
    return promise;
  }

  /** Closes the socket; pending calls are rejected. */
  close(): void {
    this.#socket.destroy();
    this.#end();
  }

  #take(chunk: Buffer): void {
    let rest = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      this.#pieces.push(rest.subarray(0, end));
      const line = Buffer.concat(this.#pieces).toString();
      this.#pieces = [];
      this.#pieceBytes = 0;
      rest = rest.subarray(end + 1);
      this.#read(line);
    }
    if (rest.length === 0) return;
    this.#pieces.push(rest);
    this.#pieceBytes += rest.length;
    if (this.#pieceBytes > MAX_LINE_BYTES) this.close();
  }

  /** Lines that are not JSON, or answer no request, are skipped: the next may be valid. */
  #read(line: string): void {
    let message: Readonly<Record<string, unknown>>;
    try {
      message = record(JSON.parse(line, honest));
    } catch {
      return;
    }
    if ('QMP' in message) this.#greeting.resolve();
    else if (typeof message.event === 'string') {
      this.#onEvent({ name: message.event, data: record(message.data) });
    } else this.#answer(message);
  }

  #answer(message: Readonly<Record<string, unknown>>): void {
    const id = Number(message.id);
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    clearTimeout(waiting.timer);
    const reason = record(message.error).desc;
    if ('return' in message) waiting.resolve(message.return);
    else waiting.reject(new QmpError('refused', typeof reason === 'string' ? reason : 'QMP refused'));
  }

  #end(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#greeting.reject(new QmpError('closed', 'QMP was closed before its greeting'));
    for (const { reject, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      reject(new QmpError('closed', 'QMP was closed before its answer'));
    }
    this.#waiting.clear();
    this.#onClose();
  }
}
