/**
 * Names and seals what a repository keeps (docs/recovery-format.md).
 *
 * From the repository's key three keys are derived (HKDF-SHA-256, no salt, info `cloudlet pieces name`,
 * `cloudlet pieces seal` and `cloudlet manifests`). A piece is named by the HMAC-SHA-256 of its bytes, so
 * that equal bytes are kept once and nobody without the key can tell what they are. It is kept as
 * `nonce (12) · AES-256-GCM(how (1) · bytes) · tag (16)`, its name being the additional data; how is 0: as
 * they are, 1: zstd.
 *
 * All of it runs on the threads of libuv, not on the event loop.
 */
import { hkdfSync, webcrypto } from 'node:crypto';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';
import { randomSecret } from '../platform/ids.ts';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const AS_IT_IS = 0;
const ZSTD = 1;

const { subtle } = webcrypto;
const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

type Key = webcrypto.CryptoKey;
/** What the types of WebCrypto want; none of ours is shared memory. */
type Plain = Uint8Array<ArrayBuffer>;

/** `altered`: cut short or changed; `unreadable`: the disk fails. */
export type Problem = 'missing' | 'altered' | 'unreadable';

/** The bytes are not those that were put there, or are gone. */
export class Damaged extends Error {
  readonly problem: Problem;

  constructor(message: string, problem: Problem = 'altered') {
    super(message);
    this.problem = problem;
  }
}

export class PieceBox {
  readonly #naming: Key;
  readonly #sealing: Key;
  readonly #manifests: Key;

  private constructor(keys: { naming: Key; sealing: Key; manifests: Key }) {
    this.#naming = keys.naming;
    this.#sealing = keys.sealing;
    this.#manifests = keys.manifests;
  }

  /** `key`: the repository's, 32 bytes. */
  static async open(key: Uint8Array): Promise<PieceBox> {
    const derive = (info: string) => Buffer.from(hkdfSync('sha256', key, '', info, 32));
    const hmac = { name: 'HMAC', hash: 'SHA-256' };
    const gcm = (bytes: Buffer) =>
      subtle.importKey('raw', bytes as Plain, 'AES-GCM', false, ['encrypt', 'decrypt']);
    const nameKey = derive('cloudlet pieces name');
    return new PieceBox({
      naming: await subtle.importKey('raw', nameKey as Plain, hmac, false, ['sign']),
      sealing: await gcm(derive('cloudlet pieces seal')),
      manifests: await gcm(derive('cloudlet manifests')),
    });
  }

  /** 64 hex digits. */
  async nameOf(bytes: Uint8Array): Promise<string> {
    return Buffer.from(await subtle.sign('HMAC', this.#naming, bytes as Plain)).toString('hex');
  }

  /** `isPacked`: the bytes are dense already, to compress them would only take time. */
  async sealPiece(name: string, bytes: Uint8Array, isPacked: boolean): Promise<Buffer> {
    return seal(this.#sealing, name, { bytes, isPacked });
  }

  /** Throws Damaged: the seal says that these are the bytes that were put under this name. */
  openPiece(name: string, sealed: Uint8Array): Promise<Buffer> {
    return open(this.#sealing, name, sealed);
  }

  /** As openPiece(), and computes the name of the bytes anew. */
  async verifyPiece(name: string, sealed: Uint8Array): Promise<void> {
    const bytes = await open(this.#sealing, name, sealed);
    if ((await this.nameOf(bytes)) !== name) throw new Damaged(`the piece ${name} holds other bytes`);
  }

  /** As openPiece(), and leaves the bytes packed: the quickest way to know that they are there. */
  async probePiece(name: string, sealed: Uint8Array): Promise<void> {
    await unseal(this.#sealing, name, sealed);
  }

  sealManifest(pointId: string, bytes: Uint8Array): Promise<Buffer> {
    return seal(this.#manifests, pointId, { bytes, isPacked: false });
  }

  /** Throws Damaged. */
  openManifest(pointId: string, sealed: Uint8Array): Promise<Buffer> {
    return open(this.#manifests, pointId, sealed);
  }
}

interface Plaintext {
  readonly bytes: Uint8Array;
  readonly isPacked: boolean;
}

async function seal(key: Key, context: string, { bytes, isPacked }: Plaintext): Promise<Buffer> {
  const packed = isPacked ? undefined : await compress(bytes);
  const isSmaller = packed !== undefined && packed.length < bytes.length;
  const content = Buffer.concat([Buffer.from([isSmaller ? ZSTD : AS_IT_IS]), isSmaller ? packed : bytes]);
  const nonce = randomSecret(NONCE_BYTES);
  const sealed = await subtle.encrypt(gcmOf(nonce, context), key, content as Plain);
  return Buffer.concat([nonce, Buffer.from(sealed)]);
}

async function open(key: Key, context: string, sealed: Uint8Array): Promise<Buffer> {
  const content = await unseal(key, context, sealed);
  const bytes = content.subarray(1);
  return content[0] === ZSTD ? decompress(bytes) : bytes;
}

async function unseal(key: Key, context: string, sealed: Uint8Array): Promise<Buffer> {
  if (sealed.length <= NONCE_BYTES + TAG_BYTES) throw new Damaged(`${context} is cut short`);
  const nonce = sealed.subarray(0, NONCE_BYTES);
  try {
    const cipher = sealed.subarray(NONCE_BYTES) as Plain;
    return Buffer.from(await subtle.decrypt(gcmOf(nonce, context), key, cipher));
  } catch {
    throw new Damaged(`${context} was changed, or is sealed under another key`);
  }
}

function gcmOf(iv: Uint8Array, context: string) {
  return { name: 'AES-GCM', iv: iv as Plain, additionalData: Buffer.from(context, 'utf8') };
}
