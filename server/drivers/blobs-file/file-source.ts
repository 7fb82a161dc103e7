/** Reads a blob's file through the threads: the first that reads opens it, and all use its descriptor. */
import type { BlobRef } from '../../storage/blobs.ts';
import { asFault } from '../blob-frames/blob-fault.ts';
import type { SlotRequest, SlotSource } from '../blob-frames/slot-reading.ts';
import type { BlobReply, ReadRequest } from './blob-messages.ts';
import { faultError } from './disk-fault.ts';
import type { FileThread, FileThreads } from './file-threads.ts';

/** With other threads, when one dies over a read. */
const MAX_TRIES = 3;

/** Rejects with an AppError. */
export class FileSource implements SlotSource {
  readonly #ref: BlobRef;
  readonly #workers: FileThreads;
  /** Every request that may still use the file. */
  readonly #outstanding = new Set<Promise<unknown>>();
  #opener: FileThread | null = null;
  #fd: number | null = null;

  constructor(ref: BlobRef, workers: FileThreads) {
    this.#ref = ref;
    this.#workers = workers;
  }

  read({ slot, firstChunk, chunks, endChunk }: SlotRequest): Promise<number> {
    const thread = this.#workers.pick();
    // Its number may be another file's by now.
    const isLost = this.#opener !== null && !this.#opener.isAlive;
    const fd = isLost ? null : this.#fd;
    const isAll = firstChunk + chunks === endChunk;
    const close = isLost || (fd === null && isAll);
    if (fd === null && !close) this.#opener = thread;
    const { name, sizeBytes, dataKey } = this.#ref;
    const file = { name, sizeBytes, dataKey, fd, close };
    const request = { op: 'read', ...file, slot: slot.memory, firstChunk, chunks } as const;
    const reply = this.#ask(thread, request).then(
      (answer) => {
        this.#fd ??= answer.fd ?? null;
        return answer.goodChunks ?? 0;
      },
      (error) => {
        throw faultError(asFault(error, 'read'));
      },
    );
    const forget = () => this.#outstanding.delete(reply);
    this.#outstanding.add(reply);
    reply.then(forget, forget);
    return reply;
  }

  /**
   * A thread that dies takes along the file that it opened, before anybody hears of it: what was not read
   * well through another's descriptor does not count, and is read anew.
   */
  async #ask(thread: FileThread, request: ReadRequest): Promise<BlobReply> {
    const isOwn = request.fd === null;
    try {
      const answer = await thread.request(request);
      if (isOwn || answer.goodChunks === request.chunks) return answer;
    } catch (error) {
      if (isOwn && thread.isAlive) throw error;
    }
    return this.#askAnew(request);
  }

  async #askAnew(request: ReadRequest): Promise<BlobReply> {
    for (let tries = 1; ; tries++) {
      const thread = this.#workers.pick();
      try {
        return await thread.request({ ...request, fd: null, close: true });
      } catch (error) {
        if (thread.isAlive || tries === MAX_TRIES) throw error;
      }
    }
  }

  /** Closes the file once nothing reads from it; the caller need not wait for that. */
  close(): void {
    Promise.allSettled(this.#outstanding).then(() => {
      // The files of a dead thread are closed with it.
      if (this.#fd !== null) this.#opener?.request({ op: 'close', fd: this.#fd }).catch(() => {});
    });
  }
}
