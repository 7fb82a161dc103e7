/**
 * One upload: bytes first, name later (a form may name the object after its file). Up to
 * INLINE_MAX_BYTES the bytes are kept in memory and stored in the database row; larger ones are
 * streamed to a blob. Nothing is visible until publish() has committed.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac } from 'node:crypto';
import { crc32 } from 'node:zlib';
import {
  type Digest,
  type DigestName,
  type Digests,
  digestsOf,
  newDigest,
} from '../../../libs/s3-wire/index.ts';
import type { Awaitable } from '../../metadata/metadata.ts';
import { detachBuffer } from '../../platform/buffers.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { BlobStore, BlobWriter } from '../blobs/blobs.ts';
import type { ByteCipher } from '../keys/customer-key.ts';
import type { DataKeys, Encryption } from '../keys/encryption.ts';
import { KeyedDigest } from '../keys/keyed-digest.ts';
import type { NewBlob } from '../objects/object-sql.ts';

export const INLINE_MAX_BYTES = 16 * 1024;
/** Upper bound for one version's rows and index entries. */
const ROW_OVERHEAD_BYTES = 4096;

/** Counts the bytes of one upload together with the account's other uploads in progress. */
export interface UploadRoom {
  /** If a promise is returned, wait for it; it rejects if the account may not upload that many bytes. */
  take(bytes: number): Promise<void> | undefined;
  /** Call when the upload has ended. */
  release(): void;
}

/** The account's limits are checked once per this many bytes, so small uploads never wait. */
const ASK_BYTES = 16 * 2 ** 20;

/** Bytes of uploads in progress, by account: they use space, but no quota counts them yet. */
export class UploadsUnderWay {
  readonly #accounts = new Map<number, { bytes: number; allowed: number }>();
  /** Throws if the account's uploads in progress may not have that many bytes. */
  readonly #assertMay: (accountId: number, bytes: number) => Awaitable<void>;

  constructor(assertMay: (accountId: number, bytes: number) => Awaitable<void>) {
    this.#assertMay = assertMay;
  }

  room(accountId: number): UploadRoom {
    let own = 0;
    return {
      take: (bytes) => {
        const all = this.#accounts.get(accountId) ?? { bytes: 0, allowed: ASK_BYTES };
        this.#accounts.set(accountId, all);
        own += bytes;
        all.bytes += bytes;
        return all.bytes <= all.allowed ? undefined : this.#ask(accountId, all);
      },
      release: () => {
        const all = this.#accounts.get(accountId);
        if (all === undefined) return;
        all.bytes -= own;
        all.allowed = Math.min(all.allowed, all.bytes + ASK_BYTES);
        own = 0;
        if (all.bytes === 0) this.#accounts.delete(accountId);
      },
    };
  }

  async #ask(accountId: number, all: { readonly bytes: number; allowed: number }): Promise<void> {
    const { bytes } = all;
    await this.#assertMay(accountId, bytes);
    all.allowed = Math.max(all.allowed, bytes + ASK_BYTES);
  }
}

export interface UploadDeps {
  readonly blobs: Pick<BlobStore, 'create'>;
  readonly dataKeys: Pick<DataKeys, 'wrap'>;
  /** Throws `out_of_space` unless that many more bytes may be stored. */
  readonly assertSpace: (bytes: number) => void;
  /** Account of the bucket. */
  readonly owner: number;
  readonly room?: UploadRoom;
  readonly encryption: Encryption;
  readonly maxBytes: number;
  /** Maximum bytes stored in the row; default: INLINE_MAX_BYTES. */
  readonly maxInlineBytes?: number | undefined;
  /**
   * The key of the digest that becomes the ETag of bytes encrypted with a named or client's key, so
   * that an equal part has an equal ETag. Absent: the ETag is random.
   */
  readonly etagKey?: Uint8Array | undefined;
}

/** The received bytes, for the row. */
export interface ReceivedBytes {
  readonly sizeBytes: number;
  /** Hex: MD5 of the plaintext. With a customer-provided key: see etagKey. */
  readonly etag: string;
  /** The requested digests of the plaintext. */
  readonly digests: Digests;
  readonly blob: NewBlob;
  /** Call when a row may reference the blob: end() then keeps it. */
  readonly keep: () => void;
}

export class Upload {
  readonly #deps: UploadDeps;
  readonly #dataKey: Buffer | null;
  /** Record of the customer-provided key, which encrypts the bytes before all other processing. */
  readonly #customer: Buffer | null;
  readonly #cipher: ByteCipher | null;
  readonly #digests = new Set<DigestName>();
  /** Digests of plaintext that is encrypted here; worker threads never see it. */
  readonly #own = new Map<DigestName, Digest>();
  /** The ETag of such bytes, if requested: an MD5 would take most of the time here. */
  readonly #keyed: KeyedDigest | undefined;
  #head: { readonly bytes: Buffer; readonly endsPiece: boolean }[] = [];
  #onPieces: ((hashes: readonly string[]) => void) | undefined;
  #sizeBytes = 0;
  #asked: Promise<void> | undefined;
  #opening: Promise<BlobWriter> | undefined;
  #spilling: Promise<void> | undefined;
  #writer: BlobWriter | undefined;
  #isKept = false;

  constructor(deps: UploadDeps) {
    this.#deps = deps;
    const { encryption } = deps;
    this.#dataKey = encryption.kind === 'none' ? null : randomSecret(32);
    this.#customer = encryption.kind === 'customer' ? encryption.key.record() : null;
    this.#cipher =
      encryption.kind === 'customer' ? encryption.key.cipher(this.#customer ?? Buffer.alloc(0)) : null;
    const { etagKey } = deps;
    if (this.#cipher !== null && etagKey !== undefined) this.#keyed = new KeyedDigest(etagKey);
    else if (!this.#hidesMd5 || etagKey !== undefined) this.#digests.add('MD5');
  }

  /** Requests digests of the plaintext; call before the first byte. */
  digest(names: readonly DigestName[]): void {
    for (const name of names) {
      this.#digests.add(name);
      if (this.#cipher !== null) this.#own.set(name, newDigest(name));
    }
  }

  /**
   * Requests the SHA-256 of each piece that write() ends, hex, in order; call before the first
   * byte. All have arrived when finish() resolves. False: not possible for this upload, because
   * threads do not see its plaintext. `onPieces` must not throw.
   */
  hashPieces(onPieces: (hashes: readonly string[]) => void): boolean {
    if (this.#cipher !== null) return false;
    this.#onPieces = onPieces;
    return true;
  }

  /**
   * Copies the chunk. A promise asks the caller to wait before the next. Throws `payload_too_large`
   * and the errors of BlobWriter.write.
   */
  write(chunk: Uint8Array, endsPiece = false): Promise<void> | undefined {
    const asked = this.#deps.room?.take(chunk.length);
    // Nobody awaits the promise if #store() throws: its rejection must not be unhandled.
    asked?.catch(() => {});
    const waiting = this.#store(chunk, endsPiece);
    if (asked === undefined) return waiting;
    this.#asked = asked;
    return Promise.all([asked, waiting]).then(() => undefined);
  }

  #store(chunk: Uint8Array, endsPiece: boolean): Promise<void> | undefined {
    this.#sizeBytes += chunk.length;
    if (this.#sizeBytes > this.#deps.maxBytes) {
      throw new AppError('payload_too_large', `An object can have at most ${this.#deps.maxBytes} bytes`);
    }
    for (const digest of this.#own.values()) digest.update(chunk);
    this.#keyed?.update(chunk);
    const bytes = this.#cipher?.(chunk) ?? chunk;
    if (this.#writer) {
      const waiting = this.#writer.write(bytes, endsPiece);
      if (bytes !== chunk) detachBuffer(bytes);
      return waiting;
    }
    this.#head.push({ bytes: bytes === chunk ? Buffer.from(chunk) : (bytes as Buffer), endsPiece });
    const { maxInlineBytes = INLINE_MAX_BYTES } = this.#deps;
    if (this.#sizeBytes <= maxInlineBytes) return undefined;
    this.#spilling ??= this.#spill();
    return this.#spilling;
  }

  async #spill(): Promise<void> {
    const { blobs, owner } = this.#deps;
    const asked = { dataKey: this.#dataKey, owner, digests: this.#shared, onPieces: this.#onPieces };
    this.#opening = blobs.create(asked);
    const writer = await this.#opening;
    // Includes bytes that arrive during the loop.
    for (const { bytes, endsPiece } of this.#head) await writer.write(bytes, endsPiece);
    this.#head = [];
    this.#writer = writer;
  }

  /** After all bytes were received: makes them durable (a blob) or ready to commit (inline). */
  async finish(): Promise<ReceivedBytes> {
    // The last bytes may come with the end of the request, while the blob is being created.
    if (this.#spilling !== undefined) await this.#spilling;
    await this.#asked;
    if (!this.#writer) return this.#finishInline();
    const { name, sizeBytes, digests } = await this.#writer.finish();
    return this.#received({ name, sizeBytes, data: null, checksum: null, ...this.#keys() }, digests);
  }

  #received(blob: NewBlob, shared: Digests): ReceivedBytes {
    const own = [...this.#own].map(([name, digest]) => [name, digest.digest().toString('hex')]);
    const digests: Digests = { ...shared, ...Object.fromEntries(own) };
    const etag = this.#etag(digests.MD5 ?? '');
    return { sizeBytes: blob.sizeBytes, etag, digests, blob, keep: () => this.#keep() };
  }

  #etag(md5: string): string {
    const { etagKey } = this.#deps;
    if (!this.#hidesMd5) return md5;
    if (this.#keyed !== undefined) return this.#keyed.digest();
    if (etagKey === undefined) return randomSecret(16).toString('hex');
    return createHmac('sha256', etagKey).update(md5).digest('hex').slice(0, 32);
  }

  /** The digests that are not computed while the bytes pass. */
  get #shared(): readonly DigestName[] {
    return this.#cipher === null ? [...this.#digests] : [];
  }

  get #hidesMd5(): boolean {
    const { kind } = this.#deps.encryption;
    return kind === 'named' || kind === 'customer';
  }

  // At most 16 KiB: hashing here costs less than passing it to a thread.
  #finishInline(): ReceivedBytes {
    // A row is written twice: to the log and, later, to the database.
    this.#assertSpace(2 * (this.#sizeBytes + ROW_OVERHEAD_BYTES));
    const [first, ...others] = this.#head.map(({ bytes: each }) => each);
    const bytes = first && others.length === 0 ? first : Buffer.concat(first ? [first, ...others] : []);
    this.#onPieces?.(this.#inlinePieces());
    const data = this.#dataKey ? sealInline(bytes, this.#dataKey) : bytes;
    const blob = { name: null, sizeBytes: bytes.length, data, checksum: crc32(data), ...this.#keys() };
    return this.#received(blob, digestsOf(bytes, this.#shared));
  }

  #inlinePieces(): string[] {
    const pieces: string[] = [];
    let open = createHash('sha256');
    for (const { bytes, endsPiece } of this.#head) {
      open.update(bytes);
      if (!endsPiece) continue;
      pieces.push(open.digest('hex'));
      open = createHash('sha256');
    }
    return pieces;
  }

  #keys(): Pick<NewBlob, 'wrappedKey' | 'namedKey' | 'customer'> {
    const { encryption, dataKeys } = this.#deps;
    return {
      wrappedKey: this.#dataKey && dataKeys.wrap(this.#dataKey, encryption),
      namedKey: encryption.kind === 'named' ? encryption.key.id : null,
      customer: this.#customer,
    };
  }

  #assertSpace(bytes: number): void {
    try {
      this.#deps.assertSpace(bytes);
    } catch (error) {
      if (!isAppError(error, 'out_of_space')) throw error;
      const detail = `The disk of this cloud has no space for ${this.#sizeBytes} bytes; nothing was stored`;
      throw new AppError('out_of_space', detail, { ...(error.hint && { hint: error.hint }), cause: error });
    }
  }

  #keep(): void {
    this.#isKept = true;
  }

  /** Removes the received bytes, unless keep() was called. Every upload must call it at its end. */
  async end(): Promise<void> {
    this.#head = [];
    if (!this.#isKept) {
      // The client may disconnect while its file is being created.
      const writer = await this.#opening?.catch(() => undefined);
      await writer?.abort();
    }
    this.#writer?.release();
    this.#deps.room?.release();
  }
}

// The data key is used for this one message only, so a constant nonce is safe.
const INLINE_NONCE = Buffer.alloc(12);
const TAG_BYTES = 16;

function sealInline(bytes: Uint8Array, dataKey: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', dataKey, INLINE_NONCE);
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
}

/** The plaintext of an inline blob, verified. Throws `data_corrupted`. */
export function openInline(
  data: Uint8Array,
  checksum: number | null,
  dataKey: Uint8Array | null,
): Uint8Array {
  if (crc32(data) !== checksum) throw damaged();
  if (!dataKey) return data;
  try {
    const decipher = createDecipheriv('aes-256-gcm', dataKey, INLINE_NONCE);
    decipher.setAuthTag(data.subarray(data.length - TAG_BYTES));
    return Buffer.concat([decipher.update(data.subarray(0, data.length - TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw damaged(cause);
  }
}

function damaged(cause?: unknown): AppError {
  return new AppError('data_corrupted', 'The stored bytes do not match their checksum and were not sent', {
    cause,
  });
}
