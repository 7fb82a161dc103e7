/**
 * The pieces of a repository, worked on by threads. These begin with the first job, do not keep the process
 * alive, and end when there was none for a while.
 */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { ownBytes } from '../../platform/buffers.ts';
import { Damaged } from '../../recovery/repository/piece-box.ts';
import type {
  FilePart,
  KeptPart,
  KeptPiece,
  PieceStore,
  PlacedFile,
} from '../../recovery/repository/target.ts';
import type { PieceAnswer, PieceFailure, PieceJob } from './piece-jobs.ts';
import type { PieceSetup } from './piece-storage.ts';

/** Maximum threads: more would take CPU time from requests. */
const MAX_THREADS = 4;
const IDLE_MS = 5000;

export interface PieceThreadsDeps {
  /** File of the driver's thread, which calls answerPieceJobs(). */
  readonly thread: string;
  /** A PieceSetup with further values for the driver's thread. */
  readonly setup: () => Readonly<Record<string, unknown>>;
  readonly key: Uint8Array;
  /** Converts a failed write to an error for people. */
  readonly explain: (cause: unknown) => unknown;
  /** Converts a read failure that is not damage; default: unchanged. */
  readonly explainReading?: (cause: unknown) => unknown;
}

export class PieceThreads implements PieceStore {
  readonly #deps: PieceThreadsDeps;
  readonly #most = Math.min(MAX_THREADS, availableParallelism());
  #threads: PieceThread[] = [];
  #suspects: ReadonlySet<string> = new Set();
  #ending: NodeJS.Timeout | undefined;

  constructor(deps: PieceThreadsDeps) {
    this.#deps = deps;
  }

  prepare(): void {
    this.#leastBusy();
    this.#endLater();
  }

  distrust(pieces: ReadonlySet<string>): void {
    if (pieces.size === 0 && this.#suspects.size === 0) return;
    this.#suspects = pieces;
    this.setUpAnew();
  }

  async keep(bytes: Uint8Array, isPacked: boolean): Promise<KeptPiece> {
    const own = ownBytes(bytes);
    return this.#write({ kind: 'keep', bytes: own, isPacked }, [own.buffer]);
  }

  async keepPart(part: FilePart, isPacked: boolean): Promise<KeptPart> {
    return this.#write({ kind: 'keepPart', part, isPacked });
  }

  async read(piece: string): Promise<Buffer> {
    const { buffer } = await this.#read<Uint8Array<ArrayBuffer>>({ kind: 'read', piece });
    return Buffer.from(buffer);
  }

  async writeFile(file: PlacedFile, pieces: readonly string[]): Promise<void> {
    await this.#read({ kind: 'writeFile', file, pieces });
  }

  async check(piece: string, isQuick: boolean): Promise<void> {
    await this.#read({ kind: 'check', piece, isQuick });
  }

  async renewLock(piece: string): Promise<void> {
    await this.#write({ kind: 'renewLock', piece });
  }

  /** Later jobs are for threads with a new set-up. */
  setUpAnew(): void {
    for (const thread of this.#threads) thread.endWhenIdle();
    this.#threads = [];
  }

  /** Stops the threads at once; their jobs fail. */
  close(): void {
    clearTimeout(this.#ending);
    for (const thread of this.#threads) thread.end();
    this.#threads = [];
  }

  async #write<T>(job: PieceJob, given?: ArrayBuffer[]): Promise<T> {
    try {
      return await this.#run(job, given);
    } catch (error) {
      throw this.#deps.explain(error);
    }
  }

  async #read<T>(job: PieceJob): Promise<T> {
    try {
      return await this.#run(job);
    } catch (error) {
      if (error instanceof Damaged) throw error;
      throw this.#deps.explainReading?.(error) ?? error;
    }
  }

  async #run<T>(job: PieceJob, given: ArrayBuffer[] = []): Promise<T> {
    clearTimeout(this.#ending);
    try {
      return (await this.#leastBusy().run(job, given)) as T;
    } finally {
      this.#endLater();
    }
  }

  #endLater(): void {
    clearTimeout(this.#ending);
    this.#ending = setTimeout(() => this.#end(), IDLE_MS).unref();
  }

  #leastBusy(): PieceThread {
    this.#threads = this.#threads.filter(({ isAlive }) => isAlive);
    const [first] = this.#threads.sort((a, b) => a.load - b.load);
    if (first !== undefined && (first.load === 0 || this.#threads.length >= this.#most)) return first;
    const { thread, setup, key } = this.#deps;
    const made = new PieceThread(thread, { ...setup(), key, suspects: this.#suspects });
    this.#threads.push(made);
    return made;
  }

  #end(): void {
    for (const thread of this.#threads) thread.endWhenIdle();
    this.#threads = [];
  }
}

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

class PieceThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #isToEnd = false;
  isAlive = true;

  constructor(thread: string, workerData: PieceSetup) {
    this.#worker = new Worker(thread, { workerData, execArgv: [] });
    this.#worker.unref();
    this.#worker.on('message', ({ id, answer }: { id: number; answer: PieceAnswer }) => {
      const waiting = this.#take(id);
      if ('failure' in answer) waiting?.reject(errorOf(answer.failure));
      else waiting?.resolve(answer.result);
    });
    this.#worker.on('error', (error) => this.#fail(error));
    this.#worker.on('exit', () => this.#fail(new Error('a thread that works on pieces has ended')));
  }

  /** Jobs without a result. */
  get load(): number {
    return this.#waiting.size;
  }

  run(job: PieceJob, given: ArrayBuffer[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = ++this.#lastId;
      this.#waiting.set(id, { resolve, reject });
      this.#worker.ref();
      this.#worker.postMessage({ id, job }, given);
    });
  }

  endWhenIdle(): void {
    this.#isToEnd = true;
    if (this.load === 0) this.end();
  }

  end(): void {
    void this.#worker.terminate();
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.load === 0) this.#worker.unref();
    if (this.#isToEnd) this.endWhenIdle();
    return waiting;
  }

  #fail(error: unknown): void {
    this.isAlive = false;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

function errorOf({ message, code, problem }: PieceFailure): Error {
  if (problem !== undefined) return new Damaged(message, problem);
  return Object.assign(new Error(message), code === undefined ? {} : { code });
}
