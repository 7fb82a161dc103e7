/** Pieces named, sealed, stored, read and checked: for a separate thread. */
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { ownBytes, release } from '../../platform/buffers.ts';
import { codeOf, isCode } from '../../platform/files.ts';
import { BLOCK_BYTES, HOLE } from '../../recovery/repository/chunks.ts';
import { Damaged, PieceBox } from '../../recovery/repository/piece-box.ts';
import type { FilePart, KeptPart, KeptPiece, PlacedFile } from '../../recovery/repository/target.ts';
import type { PieceAnswer, PieceJob } from './piece-jobs.ts';
import type { PieceSetup, PieceStorage } from './piece-storage.ts';
import { writeSparse } from './sparse-file.ts';

/** Blocks of one job, which cannot be cancelled once started. */
const PART_BLOCKS = 4;

class PieceWork {
  readonly #storage: PieceStorage;
  readonly #suspects: ReadonlySet<string>;
  readonly #box: PieceBox;
  /** The name of a block of a hole. */
  readonly #hole: string;
  /** Free blocks; at most `atOnce` are in use. */
  readonly #blocks: Buffer[] = [];
  #blocksLeft: number;
  readonly #waiting: (() => void)[] = [];

  constructor(storage: PieceStorage, { key, suspects }: PieceSetup) {
    this.#storage = storage;
    this.#suspects = suspects;
    this.#box = new PieceBox(key);
    this.#hole = this.#box.nameOf(HOLE);
    this.#blocksLeft = storage.atOnce;
  }

  async keep(bytes: Uint8Array, isPacked: boolean): Promise<KeptPiece> {
    const name = this.#box.nameOf(bytes);
    if (!this.#suspects.has(name) && (await this.#storage.has(name))) return { name, addedBytes: 0 };
    const parts = this.#box.sealPiece(name, bytes, isPacked);
    const addedBytes = await this.#storage.put(name, parts);
    for (const part of parts) release(part);
    return { name, addedBytes };
  }

  async keepPart({ path, from }: FilePart, isPacked: boolean): Promise<KeptPart> {
    const opened = attempt(() => openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW));
    if ('unreadable' in opened) return opened;
    const file = opened.result;
    const running: Promise<KeptPiece>[] = [];
    let bytes = 0;
    let isEnd = false;
    try {
      while (!isEnd && running.length < PART_BLOCKS) {
        const block = await this.#takeBlock();
        // Without an offset, reads continue at the position, as pipes require.
        const read = attempt(() => fill(block, file, from === 0 ? null : from + bytes));
        const length = 'unreadable' in read ? 0 : read.result;
        if (length === 0) this.#giveBlock(block);
        if ('unreadable' in read) return read;
        isEnd = length < BLOCK_BYTES;
        if (length === 0) break;
        bytes += length;
        const kept = this.keep(block.subarray(0, length), isPacked).finally(() => this.#giveBlock(block));
        kept.catch(() => {});
        running.push(kept);
      }
      const kept = await Promise.all(running);
      const addedBytes = kept.reduce((sum, { addedBytes: added }) => sum + added, 0);
      return { pieces: kept.map(({ name }) => name), bytes, addedBytes, isEnd };
    } finally {
      await Promise.allSettled(running);
      closeSync(file);
    }
  }

  read(piece: string): Promise<Buffer> {
    return this.#open(piece, (sealed) => this.#box.openPiece(piece, sealed));
  }

  writeFile(file: PlacedFile, pieces: readonly string[]): Promise<void> {
    return writeSparse(file, this.#joined(pieces));
  }

  check(piece: string, isQuick: boolean): Promise<void> {
    return this.#open(piece, (sealed) =>
      isQuick ? this.#box.probePiece(piece, sealed) : this.#box.verifyPiece(piece, sealed),
    );
  }

  async renewLock(piece: string): Promise<void> {
    await this.#storage.renewLock(piece);
  }

  async #open<T>(piece: string, open: (sealed: Buffer) => T): Promise<T> {
    for (let left = this.#storage.readings - 1; ; left--) {
      const sealed = await this.#storage.get(piece);
      try {
        return open(sealed);
      } catch (error) {
        if (!(error instanceof Damaged) || left <= 0) throw error;
      } finally {
        release(sealed);
      }
    }
  }

  /** Each buffer is valid until the next is requested. Reads ahead as far as the target allows. */
  async *#joined(pieces: readonly string[]): AsyncGenerator<Uint8Array> {
    const ahead: Promise<Buffer>[] = [];
    let next = 0;
    try {
      for (let at = 0; at < pieces.length; at++) {
        for (; next < pieces.length && next < at + this.#storage.atOnce; next++) {
          const piece = String(pieces[next]);
          const read = piece === this.#hole ? Promise.resolve(HOLE) : this.read(piece);
          read.catch(() => {});
          ahead.push(read);
        }
        const bytes = await (ahead.shift() as Promise<Buffer>);
        yield bytes;
        if (bytes !== HOLE) release(bytes);
      }
    } finally {
      await Promise.allSettled(ahead);
    }
  }

  async #takeBlock(): Promise<Buffer> {
    if (this.#blocksLeft === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#blocksLeft--;
    return this.#blocks.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }

  #giveBlock(block: Buffer): void {
    this.#blocks.push(block);
    const next = this.#waiting.shift();
    if (next === undefined) this.#blocksLeft++;
    else next();
  }
}

/** Catches errors of the file being read, not of files being written. */
function attempt<T>(work: () => T): { readonly result: T } | { readonly unreadable: string | null } {
  try {
    return { result: work() };
  } catch (error) {
    return { unreadable: isCode(error, 'ENOENT') ? null : (error as Error).message };
  }
}

/** Fewer bytes than a block: the file ends there. */
function fill(block: Buffer, file: number, from: number | null): number {
  for (let filled = 0; ; ) {
    const position = from === null ? null : from + filled;
    const read = readSync(file, block, filled, block.length - filled, position);
    filled += read;
    if (read === 0 || filled === block.length) return filled;
  }
}

/** Answers the jobs of this thread from now on. */
export function answerPieceJobs(storage: PieceStorage, setup: PieceSetup): void {
  const pieces = new PieceWork(storage, setup);
  parentPort?.on('message', async ({ id, job }: { readonly id: number; readonly job: PieceJob }) => {
    const answer = await answerTo(pieces, job);
    if (job.kind === 'keep') release(job.bytes);
    const bytes = 'result' in answer && answer.result instanceof Uint8Array ? [answer.result.buffer] : [];
    parentPort?.postMessage({ id, answer }, bytes as ArrayBuffer[]);
  });
}

async function answerTo(pieces: PieceWork, job: PieceJob): Promise<PieceAnswer> {
  try {
    return { result: await work(pieces, job) };
  } catch (error) {
    const { message } = error as Error;
    return {
      failure: {
        message,
        code: codeOf(error),
        problem: error instanceof Damaged ? error.problem : undefined,
      },
    };
  }
}

async function work(pieces: PieceWork, job: PieceJob): Promise<unknown> {
  switch (job.kind) {
    case 'keep':
      return pieces.keep(job.bytes, job.isPacked);
    case 'keepPart':
      return pieces.keepPart(job.part, job.isPacked);
    case 'read':
      return ownBytes(await pieces.read(job.piece));
    case 'writeFile':
      return pieces.writeFile(job.file, job.pieces);
    case 'check':
      return pieces.check(job.piece, job.isQuick);
    case 'renewLock':
      return pieces.renewLock(job.piece);
  }
}
