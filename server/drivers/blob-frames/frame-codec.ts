/** Seals chunks into frames and opens frames again. Runs on the worker threads. */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { crc32 } from '@node-rs/crc32';
import { detachBuffer } from '../../platform/buffers.ts';
import { CRC_BYTES, crcSeed, frameNonce, noncePrefix, TAG_BYTES } from './blob-format.ts';

export interface FramePosition {
  readonly index: number;
  /** True for the last frame of the blob. */
  readonly last: boolean;
}

export interface FrameCodec {
  /** Bytes after each frame's body. */
  readonly tailBytes: number;
  /** Body and tail in the order they are written. The body may share memory with `plain`. */
  seal(plain: Uint8Array, position: FramePosition): readonly [Uint8Array, Uint8Array];
  /**
   * Verifies a frame and leaves the plaintext in `body`. False when it was altered; `body` is then not to be
   * used.
   */
  open(body: Uint8Array, tail: Buffer, position: FramePosition): boolean;
}

/** The codec of one blob. `dataKey` is 32 bytes, or null for a blob that is only checksummed. */
export function frameCodec(name: string, dataKey: Uint8Array | null): FrameCodec {
  return dataKey === null ? checksummed(name) : encrypted(name, dataKey);
}

function checksummed(name: string): FrameCodec {
  const nameCrc = crc32(name);
  const checksum = (bytes: Uint8Array, { index, last }: FramePosition) =>
    crc32(bytes, crcSeed(nameCrc, index, last));
  return {
    tailBytes: CRC_BYTES,
    seal(plain, position) {
      const tail = Buffer.allocUnsafe(CRC_BYTES);
      tail.writeUInt32LE(checksum(plain, position));
      return [plain, tail];
    },
    open: (body, tail, position) => tail.readUInt32LE() === checksum(body, position),
  };
}

function encrypted(name: string, dataKey: Uint8Array): FrameCodec {
  const prefix = noncePrefix(name);
  const boundTo = Buffer.from(name);
  const options = { authTagLength: TAG_BYTES };
  return {
    tailBytes: TAG_BYTES,
    seal(plain, { index, last }) {
      const cipher = createCipheriv('aes-256-gcm', dataKey, frameNonce(prefix, index, last), options);
      cipher.setAAD(boundTo);
      const body = cipher.update(plain);
      cipher.final();
      return [body, cipher.getAuthTag()];
    },
    open(body, tail, { index, last }) {
      const decipher = createDecipheriv('aes-256-gcm', dataKey, frameNonce(prefix, index, last), options);
      decipher.setAAD(boundTo).setAuthTag(tail);
      const plain = decipher.update(body);
      try {
        decipher.final();
        // Not `set`, which copies byte by byte between differently aligned memory.
        plain.copy(body);
        return true;
      } catch {
        return false;
      } finally {
        detachBuffer(plain);
      }
    },
  };
}
