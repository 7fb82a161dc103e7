/** Named keys, opened: they wrap data keys. See named-keys.ts. */
import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import { type Ages, Remembered } from '../../metadata/ages.ts';
import { AppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { Sealer } from '../../platform/master-key.ts';
import type { NamedKeySql } from './named-key-sql.ts';

/** A key that is ready to wrap data keys. */
export interface NamedKey {
  /** Row id. */
  readonly id: number;
  readonly keyId: string;
  readonly isDisabled: boolean;
  readonly wrap: (dataKey: Uint8Array) => Uint8Array;
  /** Throws `data_corrupted`. */
  readonly unwrap: (wrapped: Uint8Array) => Uint8Array;
  /** The key for ETags of that upload: see etagKey of Upload. */
  readonly etagKey: (uploadId: string) => Uint8Array;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Maximum opened keys in memory. */
const KEPT = 1000;

export interface NamedKeyringDeps {
  readonly store: NamedKeySql;
  readonly sealer: Pick<Sealer, 'unseal'>;
  readonly ages: Ages;
}

export class NamedKeyring {
  readonly #store: NamedKeySql;
  readonly #sealer: Pick<Sealer, 'unseal'>;
  /** By row id. */
  readonly #opened: Remembered<number, NamedKey>;

  constructor(deps: NamedKeyringDeps) {
    this.#store = deps.store;
    this.#sealer = deps.sealer;
    this.#opened = new Remembered({ ages: deps.ages, most: KEPT, read: (id) => this.#read(id) });
  }

  /**
   * The account's key of that name, or of an ARN that ends in it, for encryption. Throws
   * `encryption_key_not_found`, `encryption_key_disabled`.
   */
  async find(accountId: number, keyId: string): Promise<NamedKey> {
    const name = keyId.replace(/^arn:aws:kms:[^:]*:[^:]*:(?:key|alias)\//, '');
    const row = await this.#store.find(accountId, name);
    if (row === undefined) throw keyNotFound(keyId);
    return enabled({ ...(await this.#opened.get(row.id)), isDisabled: row.disabled_at !== null });
  }

  /** The key for reading or writing. Throws `encryption_key_disabled`, `data_corrupted`. */
  async enabledByRow(id: number): Promise<NamedKey> {
    return enabled(await this.byRow(id));
  }

  /** The key even while disabled, for verification. Throws `data_corrupted`. */
  async byRow(id: number): Promise<NamedKey> {
    return this.#opened.get(id);
  }

  /** Call after a key was changed; null: any key may have changed. */
  forget(id: number | null): void {
    this.#opened.forget(id ?? undefined);
  }

  async #read(id: number): Promise<NamedKey> {
    const row = await this.#store.byRow(id);
    if (row === undefined) throw new AppError('data_corrupted', 'The key of the stored bytes is missing');
    const key = this.#sealer.unseal(row.sealed, sealingContext(row.key_id));
    return { id: row.id, keyId: row.key_id, isDisabled: row.disabled_at !== null, ...wrapping(key) };
  }
}

function enabled(key: NamedKey): NamedKey {
  if (!key.isDisabled) return key;
  throw new AppError('encryption_key_disabled', `The encryption key ${key.keyId} is disabled`, {
    hint: 'A key with the scope storage:admin can enable it',
  });
}

/** The context in which the master key seals a named key. */
export const sealingContext = (keyId: string) => `encryption-key:${keyId}`;

function wrapping(key: Uint8Array): Pick<NamedKey, 'wrap' | 'unwrap' | 'etagKey'> {
  return {
    wrap: (dataKey) => {
      const nonce = randomSecret(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
      return Buffer.concat([nonce, cipher.update(dataKey), cipher.final(), cipher.getAuthTag()]);
    },
    unwrap: (wrapped) => {
      const end = wrapped.length - TAG_BYTES;
      const nonce = wrapped.subarray(0, NONCE_BYTES);
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
        decipher.setAuthTag(wrapped.subarray(end));
        return Buffer.concat([decipher.update(wrapped.subarray(NONCE_BYTES, end)), decipher.final()]);
      } catch (cause) {
        throw new AppError('data_corrupted', 'A data key cannot be decrypted with its named key', { cause });
      }
    },
    etagKey: (uploadId) => createHmac('sha256', key).update(`cloudlet etag\n${uploadId}`).digest(),
  };
}

export function keyNotFound(keyId: string): AppError {
  return new AppError('encryption_key_not_found', `You have no encryption key named ${keyId}`);
}
