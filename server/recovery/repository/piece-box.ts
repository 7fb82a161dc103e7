/**
 * Names and seals the pieces of a repository (docs/recovery-format.md).
 *
 * Three keys are derived from the repository's key (HKDF-SHA-256, no salt, info `cloudlet pieces name`,
 * `cloudlet pieces seal` and `cloudlet manifests`). A piece is named by the HMAC-SHA-256 of its bytes, so
 * that equal bytes are stored once and nobody without the key can identify them. It is stored as `nonce (12)
 * · AES-256-GCM(how (1) · bytes) · tag (16)`, with its name as additional data; how is 0: stored, 1: zstd.
 *
 * All of this is CPU work, so pieces are processed off the event loop (PieceStore).
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, zstdCompress, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { release } from '../../platform/buffers.ts';
import { randomSecret } from '../../platform/ids.ts';

const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const AS_IT_IS = Buffer.from([0]);
const ZSTD = Buffer.from([1]);
/** Size of zstd's output buffers, which are joined at the end. */
const AT_ONCE = { chunkSize: 2 ** 20 };
const compress = promisify(zstdCompress);

/** `altered`: truncated or changed; `unreadable`: the disk fails. */
export type Problem = 'missing' | 'altered' | 'unreadable';

/** Stored bytes that are missing, changed or unreadable. */
export class Damaged extends Error {
  readonly problem: Problem;

  constructor(message: string, problem: Problem = 'altered') {
    super(message);
    this.problem = problem;
  }
}

export class PieceBox {
  readonly #naming: Buffer;
  readonly #sealing: Buffer;
  readonly #manifests: Buffer;

  /** `key`: the repository's key, 32 bytes. */
  constructor(key: Uint8Array) {
    const derive = (info: string) => Buffer.from(hkdfSync('sha256', key, '', info, 32));
    this.#naming = derive('cloudlet pieces name');
    this.#sealing = derive('cloudlet pieces seal');
    this.#manifests = derive('cloudlet manifests');
  }

  /** 64 hex digits. */
  nameOf(bytes: Uint8Array): string {
    return createHmac('sha256', this.#naming).update(bytes).digest('hex');
  }

  /** The sealed piece, in parts. `isPacked`: the bytes are compressed already, so compression is skipped. */
  sealPiece(name: string, bytes: Uint8Array, isPacked: boolean): Buffer[] {
    return seal(this.#sealing, name, { bytes, isPacked });
  }

  /** Throws Damaged unless the seal proves that these bytes were stored under this name. */
  openPiece(name: string, sealed: Uint8Array): Buffer {
    return open(this.#sealing, name, sealed);
  }

  /** Same as openPiece(), and recomputes the name from the bytes. */
  verifyPiece(name: string, sealed: Uint8Array): void {
    const bytes = open(this.#sealing, name, sealed);
    const isRight = this.nameOf(bytes) === name;
    release(bytes);
    if (!isRight) throw new Damaged(`the piece ${name} contains other bytes`);
  }

  /** Checks the seal without decompressing: the fastest check. */
  probePiece(name: string, sealed: Uint8Array): void {
    release(unseal(this.#sealing, name, sealed).bytes);
  }

  sealManifest(pointId: string, bytes: Uint8Array): Buffer {
    return Buffer.concat(seal(this.#manifests, pointId, { bytes, isPacked: false }));
  }

  /** Same as sealManifest(), and compresses off the event loop. */
  async sealLog(name: string, bytes: Uint8Array): Promise<Buffer> {
    const packed: Buffer = await compress(bytes);
    return Buffer.concat(encrypt(this.#manifests, name, smaller(bytes, packed)));
  }

  /** Throws Damaged. */
  openManifest(pointId: string, sealed: Uint8Array): Buffer {
    return open(this.#manifests, pointId, sealed);
  }
}

interface Plaintext {
  readonly bytes: Uint8Array;
  readonly isPacked: boolean;
}

function seal(key: Uint8Array, context: string, { bytes, isPacked }: Plaintext): Buffer[] {
  const packed = isPacked || isDense(bytes) ? bytes : zstdCompressSync(bytes, AT_ONCE);
  const sealed = encrypt(key, context, smaller(bytes, packed));
  if (packed !== bytes) release(packed);
  return sealed;
}

interface Content {
  readonly how: Buffer;
  readonly content: Uint8Array;
}

function smaller(bytes: Uint8Array, packed: Uint8Array): Content {
  return packed.length < bytes.length ? { how: ZSTD, content: packed } : { how: AS_IT_IS, content: bytes };
}

function encrypt(key: Uint8Array, context: string, what: Content): Buffer[] {
  const nonce = randomSecret(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(context, 'utf8'));
  const how = cipher.update(what.how);
  const content = cipher.update(what.content);
  cipher.final();
  return [nonce, how, content, cipher.getAuthTag()];
}

const SAMPLES = 4;
const SAMPLE_BYTES = 4096;
/** Compressed data above this ratio is not worth the time of decompression. */
const DENSE = 0.98;
const QUICKLY = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

/**
 * Estimated from a few samples: compressing incompressible megabytes takes as long as encrypting them twice.
 */
function isDense(bytes: Uint8Array): boolean {
  if (bytes.length < 4 * SAMPLES * SAMPLE_BYTES) return false;
  const step = Math.floor((bytes.length - SAMPLE_BYTES) / (SAMPLES - 1));
  const samples = Array.from({ length: SAMPLES }, (_, at) =>
    bytes.subarray(at * step, at * step + SAMPLE_BYTES),
  );
  return zstdCompressSync(Buffer.concat(samples), QUICKLY).length > DENSE * SAMPLES * SAMPLE_BYTES;
}

function open(key: Uint8Array, context: string, sealed: Uint8Array): Buffer {
  const { how, bytes } = unseal(key, context, sealed);
  if (!how.equals(ZSTD)) return bytes;
  const unpacked = zstdDecompressSync(bytes, AT_ONCE);
  release(bytes);
  return unpacked;
}

function unseal(key: Uint8Array, context: string, sealed: Uint8Array): { how: Buffer; bytes: Buffer } {
  if (sealed.length <= NONCE_BYTES + TAG_BYTES) throw new Damaged(`${context} is cut short`);
  const decipher = createDecipheriv(CIPHER, key, sealed.subarray(0, NONCE_BYTES));
  decipher.setAAD(Buffer.from(context, 'utf8')).setAuthTag(sealed.subarray(-TAG_BYTES));
  const how = decipher.update(sealed.subarray(NONCE_BYTES, NONCE_BYTES + 1));
  const bytes = decipher.update(sealed.subarray(NONCE_BYTES + 1, -TAG_BYTES));
  try {
    decipher.final();
  } catch {
    throw new Damaged(`${context} was changed, or encrypted with another key`);
  }
  return { how, bytes };
}
