/** Sealed pieces as objects of a bucket: for a thread of its own. */
import { Damaged } from '../../recovery/piece-box.ts';
import { pieceFile } from '../../recovery/repository.ts';
import type { PiecePlace } from '../recovery-pieces/piece-place.ts';
import { isS3Fault } from '../s3-client/s3-fault.ts';
import { bodyOf, type S3Objects } from '../s3-client/s3-objects.ts';
import type { S3Patience } from '../s3-client/s3-requests.ts';

/** A point outlives a restart of S3. */
const PATIENCE: S3Patience = { tries: 10, untilMs: 60_000 };
/** A sealed piece has at most 4 MiB of content. */
const MAX_PIECE_BYTES = 5 * 2 ** 20;

export class S3Pieces implements PiecePlace {
  readonly atOnce = 4;
  readonly readings = 2;
  readonly #objects: S3Objects;

  constructor(objects: S3Objects) {
    this.#objects = objects;
  }

  async has(piece: string): Promise<boolean> {
    try {
      return (await this.#objects.head(pieceFile(piece), PATIENCE)) !== undefined;
    } catch (error) {
      // The answer to HEAD has no body that says what is wrong; the answer to the PUT that follows has.
      if (isS3Fault(error, 'denied', 'refused')) return false;
      throw error;
    }
  }

  async put(piece: string, parts: readonly Buffer[]): Promise<number> {
    await this.#objects.replace(pieceFile(piece), bodyOf(...parts), PATIENCE);
    return parts.reduce((sum, { length }) => sum + length, 0);
  }

  async get(piece: string): Promise<Buffer> {
    const sealed = await this.#objects.whole(pieceFile(piece), MAX_PIECE_BYTES, PATIENCE);
    if (sealed === undefined) throw new Damaged(`the piece ${piece} is missing`, 'missing');
    return sealed;
  }
}
