/** The worker threads, as seen by the event loop. */
import { Worker } from 'node:worker_threads';
import type { Alarms } from '../../platform/alarms.ts';
import { AppError } from '../../platform/errors.ts';
import { BlobFault } from './blob-fault.ts';
import type { Answer, Forget, Numbered, Sent } from './thread-messages.ts';

/** A thread that dies before its first reply would die again immediately. */
const RESTART_DELAY_MS = 1000;

/** Load of one request, and of one blob being stored. Digests: digest-streams.ts. */
const REQUEST_LOAD = 1;
export const STORE_LOAD = 2;

const slotNumbers = new WeakMap<SharedArrayBuffer, number>();
let lastSlotNumber = 0;

function slotNumber(memory: SharedArrayBuffer): number {
  const known = slotNumbers.get(memory);
  if (known !== undefined) return known;
  slotNumbers.set(memory, ++lastSlotNumber);
  return lastSlotNumber;
}

const collected = new FinalizationRegistry<{ thread: WeakRef<{ forget(slot: number): void }>; slot: number }>(
  ({ thread, slot }) => thread.deref()?.forget(slot),
);

interface Waiting<Reply> {
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}

/** The program of a thread, and its `workerData`. */
export interface ThreadProgram {
  /** Path of its file. */
  readonly script: string;
  readonly setup: unknown;
}

/** One worker thread, which replies to each `Request` with a `Reply`. */
export class BlobThread<Request extends object, Reply> {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting<Reply>>();
  /** Numbers of the slots that the thread has received. */
  readonly #slots = new Set<number>();
  #nextId = 0;
  #alive = true;
  /** Cause of death of the thread. */
  #cause: unknown;
  /** Assigned work: outstanding requests and open streams, in the units above. */
  load = 0;

  constructor(
    { script, setup }: ThreadProgram,
    onExit: (thread: BlobThread<Request, Reply>, cause: unknown) => void,
  ) {
    this.#worker = new Worker(script, { workerData: setup });
    this.#worker.on('error', (error) => {
      this.#cause = error;
    });
    this.#worker.on('message', ({ id, body }: Numbered<Answer>) => this.#resolve(id, body));
    this.#worker.on('exit', () => {
      this.#alive = false;
      for (const { reject } of this.#waiting.values()) reject(threadDied(this.#cause));
      this.#waiting.clear();
      onExit(this, this.#cause);
    });
  }

  /** False after its death, which closes everything it had open. */
  get isAlive(): boolean {
    return this.#alive;
  }

  /** True once it has answered something. */
  hasAnswered = false;

  /** Rejects with a BlobFault: of the work, or of kind `thread` when the thread dies or is dead. */
  request(request: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (!this.#alive) {
        reject(threadDied(this.#cause));
        return;
      }
      const id = this.#nextId++;
      this.#waiting.set(id, { resolve, reject });
      this.load += REQUEST_LOAD;
      this.#worker.postMessage(this.#address(id, request));
    });
  }

  #address(id: number, request: object): Sent {
    if (!('slot' in request)) return { id, body: request, slot: null, memory: null };
    const { slot, ...body } = request;
    const memory = slot as SharedArrayBuffer;
    const number = slotNumber(memory);
    const isNew = !this.#slots.has(number);
    if (isNew) {
      this.#slots.add(number);
      collected.register(memory, { thread: new WeakRef(this), slot: number });
    }
    return { id, body, slot: number, memory: isNew ? memory : null };
  }

  /** The slot was collected here: the thread must not keep it alive. */
  forget(slot: number): void {
    this.#slots.delete(slot);
    const message: Forget = { forget: slot };
    if (this.#alive) this.#worker.postMessage(message);
  }

  /** Ends the thread. Its open files are closed. */
  async kill(): Promise<void> {
    await this.#worker.terminate();
  }

  #resolve(id: number, answer: Answer): void {
    this.hasAnswered = true;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    this.load -= REQUEST_LOAD;
    if ('fault' in answer) waiting?.reject(new BlobFault(answer.fault));
    else waiting?.resolve(answer.reply as Reply);
  }
}

/** Error of a thread that died; missing file descriptors are reported in the message only. */
function threadDied(cause: unknown): BlobFault {
  const [code = ''] = /\b(?:EMFILE|ENFILE)\b/.exec(cause instanceof Error ? cause.message : '') ?? [];
  return new BlobFault({ kind: 'thread', code, message: 'a blob worker thread ended' });
}

export interface WorkerPoolDeps extends ThreadProgram {
  /** At most. */
  readonly threads: number;
  readonly alarms: Alarms;
}

export class WorkerPool<Request extends object, Reply> {
  readonly #deps: WorkerPoolDeps;
  readonly #threads = new Set<BlobThread<Request, Reply>>();
  /** Configured number of threads; dead ones are replaced. */
  #wanted = 0;
  #closing = false;

  constructor(deps: WorkerPoolDeps) {
    this.#deps = deps;
  }

  /** Running threads. */
  get threads(): readonly BlobThread<Request, Reply>[] {
    return [...this.#threads];
  }

  /**
   * The least loaded thread. A thread uses 12 MB of memory, so it is started only when the running
   * ones are busy. Throws AppError `overloaded` if none is alive.
   */
  pick(): BlobThread<Request, Reply> {
    let best: BlobThread<Request, Reply> | undefined;
    for (const thread of this.#threads) {
      if (best === undefined || thread.load < best.load) best = thread;
    }
    if ((best === undefined || best.load > 0) && this.#wanted < this.#deps.threads) {
      this.#wanted++;
      this.#start();
      return this.pick();
    }
    if (best !== undefined) return best;
    throw new AppError('overloaded', 'No storage thread is running.', { retryAfterSeconds: 1 });
  }

  /** Ends all threads; outstanding requests are rejected. */
  async close(): Promise<void> {
    this.#closing = true;
    await Promise.all(this.threads.map((thread) => thread.kill()));
  }

  #start(): void {
    if (this.#closing) return;
    const { alarms } = this.#deps;
    const onExit = (thread: BlobThread<Request, Reply>, cause: unknown) => {
      this.#threads.delete(thread);
      if (this.#closing) return;
      const reason = cause instanceof Error ? cause.message : 'it was terminated';
      const detail = `A blob worker thread died and was replaced: ${reason}`;
      alarms.raise('blob_thread_died', detail, 'Check the log; restarting Cloudlet clears the alarm');
      if (thread.hasAnswered) this.#start();
      else setTimeout(() => this.#start(), RESTART_DELAY_MS).unref();
    };
    this.#threads.add(new BlobThread(this.#deps, onExit));
  }
}
