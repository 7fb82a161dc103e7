/** The bytes of one image on their way into the engine. */
import { createHash } from 'node:crypto';
import { AppError } from '../../platform/errors.ts';
import type { ImageStage } from '../hypervisor.ts';

export interface StagingDeps {
  /** Throws `out_of_space` or `read_only` when the disk must not take so many bytes more. */
  readonly assertRoom: (bytes: number) => void;
  /** Largest source, bytes. */
  readonly maxBytes: number;
}

const GIB = 2 ** 30;

/** Throws `payload_too_large`. */
export function assertSize(bytes: number, maxBytes: number): void {
  if (bytes <= maxBytes) return;
  throw new AppError('payload_too_large', `Images of at most ${Math.floor(maxBytes / GIB)} GiB are taken`);
}

/** Counts and hashes what is staged, and stops what is too large. */
export class Staging {
  readonly imageId: string;
  readonly #stage: ImageStage;
  readonly #deps: StagingDeps;
  readonly #hash = createHash('sha256');
  #digest: string | null = null;
  #isClosed = false;
  bytes = 0;

  constructor(imageId: string, stage: ImageStage, deps: StagingDeps) {
    this.imageId = imageId;
    this.#stage = stage;
    this.#deps = deps;
  }

  /** The bytes are copied before the call returns. */
  write(piece: Uint8Array): Promise<void> {
    return this.#write(Buffer.from(piece));
  }

  async #write(piece: Buffer): Promise<void> {
    const { maxBytes, assertRoom } = this.#deps;
    this.bytes += piece.length;
    assertSize(this.bytes, maxBytes);
    assertRoom(piece.length);
    this.#hash.update(piece);
    await this.#stage.write(piece);
  }

  /** Of all that was written; nothing may be written afterwards. */
  sha256(): string {
    this.#digest ??= this.#hash.digest('hex');
    return this.#digest;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#stage.close();
  }
}
