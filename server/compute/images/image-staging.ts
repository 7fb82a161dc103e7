/** Counts and hashes the staged bytes of an image, and enforces the limit. */
import { createHash, type Hash } from 'node:crypto';
import { AppError } from '../../platform/errors.ts';
import type { ImageStage } from '../hypervisor.ts';

export interface StagingDeps {
  /** Throws `out_of_space` or `read_only` when that many more bytes cannot be stored. */
  readonly assertSpace: (bytes: number) => void;
  /** Largest source, bytes. */
  readonly maxBytes: number;
  /** A checksum to compute besides SHA-256. */
  readonly algorithm?: Algorithm;
}

export type Algorithm = 'sha256' | 'sha512';

const GIB = 2 ** 30;

/** Throws `payload_too_large`. */
export function assertImageSize(bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  throw new AppError('payload_too_large', `An image can have at most ${Math.floor(maxBytes / GIB)} GiB`);
}

export class Staging {
  readonly imageId: string;
  readonly #stage: ImageStage;
  readonly #deps: StagingDeps;
  readonly #hashes = new Map<Algorithm, Hash>();
  readonly #sums = new Map<Algorithm, string>();
  #isClosed = false;
  bytes = 0;

  constructor(imageId: string, stage: ImageStage, deps: StagingDeps) {
    this.imageId = imageId;
    this.#stage = stage;
    this.#deps = deps;
    for (const one of ['sha256', deps.algorithm ?? 'sha256'] as const) this.#hashes.set(one, createHash(one));
  }

  /** Hashes the bytes that were staged before. Call it once, before the first write. */
  async takeKept(signal: AbortSignal): Promise<void> {
    for await (const piece of this.#stage.kept()) {
      signal.throwIfAborted();
      this.#count(piece);
    }
  }

  /** The bytes are copied before the call returns. */
  write(piece: Uint8Array): Promise<void> {
    return this.#write(Buffer.from(piece));
  }

  async #write(piece: Buffer): Promise<void> {
    this.#deps.assertSpace(piece.length);
    this.#count(piece);
    await this.#stage.write(piece);
  }

  #count(piece: Uint8Array): void {
    this.bytes += piece.length;
    assertImageSize(this.bytes, this.#deps.maxBytes);
    for (const hash of this.#hashes.values()) hash.update(piece);
  }

  /** Checksum of everything staged; nothing may be written afterwards. */
  sum(algorithm: Algorithm): string {
    const sum = this.#sums.get(algorithm) ?? this.#hashes.get(algorithm)?.digest('hex') ?? '';
    this.#sums.set(algorithm, sum);
    return sum;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#stage.close();
  }
}
