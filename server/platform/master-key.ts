/**
 * The keys that seal every secret in the database. They are kept beside it, never in it: the database alone
 * opens nothing, and a backup without `master.key` is worthless for sealed values.
 *
 * A sealed value is `version (1) · key id (8) · nonce (12) · ciphertext · tag (16)`, by AES-256-GCM with a
 * random nonce; additional data are header and context, so a value moved to another row does not open.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from './errors.ts';
import { writeDurableFile } from './files.ts';
import { randomSecret } from './ids.ts';

const KEY_FILE = 'master.key';
const VERSION = 1;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
/** Version and key id at the front of every sealed value. */
const SEALED_HEADER_BYTES = 1 + KEY_ID_BYTES;
const CIPHERTEXT_AT = SEALED_HEADER_BYTES + NONCE_BYTES;

/** Encryption with the master key, for secrets that must be shown or used again. */
export interface Sealer {
  /** Encrypts with the master key. `context` is authenticated and needed to unseal. */
  seal(plaintext: Uint8Array, context: string): Buffer;
  /** Decrypts. Throws if the bytes, the context or the master key differ. */
  unseal(sealed: Uint8Array, context: string): Buffer;
}

interface KeyFile {
  /** Id of the cloud whose secrets the keys seal; files of earlier versions have none. */
  readonly cloud?: string;
  readonly current: string;
  /** Key id (16 hex digits) → 32 bytes, base64. */
  readonly keys: Readonly<Record<string, string>>;
}

function malformed(path: string, what: string): Error {
  return new Error(`${path} is not a master key file (${what}): restore it from your backup`);
}

interface KeySet {
  readonly cloud: string | null;
  readonly current: string;
  readonly keys: Map<string, Buffer>;
}

function parseKeyFile(path: string, text: string): KeySet {
  let file: Partial<KeyFile> | null;
  try {
    file = JSON.parse(text) as Partial<KeyFile> | null;
  } catch {
    throw malformed(path, 'it is not JSON');
  }
  const { cloud, current, keys: encoded } = file ?? {};
  if (typeof current !== 'string' || typeof encoded !== 'object' || encoded === null) {
    throw malformed(path, '"current" or "keys" is missing');
  }
  const keys = new Map<string, Buffer>();
  for (const [id, value] of Object.entries(encoded)) {
    const key = Buffer.from(String(value), 'base64');
    const sound = /^[0-9a-f]{16}$/.test(id) && key.length === KEY_BYTES && key.toString('base64') === value;
    if (!sound) throw malformed(path, `key ${id} is damaged`);
    keys.set(id, key);
  }
  if (!keys.has(current)) throw malformed(path, 'the current key is missing');
  return { cloud: typeof cloud === 'string' ? cloud : null, current, keys };
}

function readKeyFile(path: string): KeySet | null {
  let text: string;
  try {
    const mode = statSync(path).mode & 0o777;
    if ((mode & 0o077) !== 0) {
      const octal = mode.toString(8).padStart(3, '0');
      throw new Error(`other users can read ${path} (mode ${octal}): run chmod 600 on it`);
    }
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') return null;
    if (code === undefined) throw error;
    throw new Error(`${path} cannot be read (${String(code)})`, { cause: error });
  }
  return parseKeyFile(path, text);
}

/** A mounted secret may have any mode. */
function readCopy(path: string): KeySet {
  try {
    return parseKeyFile(path, readFileSync(path, 'utf8'));
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    throw new Error(`CLOUDLET_MASTER_KEY_FILE ${path} cannot be read (${String(error.code)})`, {
      cause: error,
    });
  }
}

export interface MasterKeysOptions {
  readonly dataDir: string;
  /** False if the database already has sealed values, so that a lost file is not replaced. */
  readonly mayCreate: boolean;
  /** Id of the cloud that the keys belong to. */
  readonly cloudId: string;
  /** A copy to start with if the directory has none; '': none. */
  readonly copyFile?: string;
}

export class MasterKeys {
  readonly #dataDir: string;
  readonly #cloud: string;
  #keys: Map<string, Buffer>;
  #current: string;

  private constructor(dataDir: string, { cloud, current, keys }: KeySet) {
    this.#dataDir = dataDir;
    this.#cloud = cloud ?? '';
    this.#current = current;
    this.#keys = keys;
  }

  /**
   * Reads `<dataDir>/master.key`, or creates it. Throws an Error with a one-line message if it is missing,
   * readable by others, damaged or of another cloud.
   */
  static open({ dataDir, mayCreate, cloudId, copyFile = '' }: MasterKeysOptions): MasterKeys {
    const own = join(dataDir, KEY_FILE);
    const has = readKeyFile(own);
    const [path, found] = has === null && copyFile !== '' ? [copyFile, readCopy(copyFile)] : [own, has];
    if (found !== null) {
      if (found.cloud !== null && found.cloud !== cloudId) {
        throw new Error(
          `${path} belongs to another cloud (${found.cloud}) than the database (${cloudId}): restore the right copy`,
        );
      }
      const keys = new MasterKeys(dataDir, { ...found, cloud: cloudId });
      if (found.cloud === null || has === null) keys.#replace(found.current, found.keys);
      return keys;
    }
    if (!mayCreate) {
      throw new Error(
        `${path} is missing, but the database has values sealed with it: restore your copy, ` +
          'or name that of another node in CLOUDLET_MASTER_KEY_FILE',
      );
    }
    const made = new MasterKeys(dataDir, { cloud: cloudId, current: '', keys: new Map() });
    made.addKey();
    return made;
  }

  /**
   * The keys in the text of such a file, only for opening values. Throws an Error with a one-line message.
   */
  static read(text: string, path: string): Pick<MasterKeys, 'ids' | 'keyIdOf' | 'unseal'> {
    return new MasterKeys('', parseKeyFile(path, text));
  }

  /** Id of the key that new values are sealed under: 16 hex digits. */
  get currentId(): string {
    return this.#current;
  }

  /** Ids of all keys, including the current one. */
  ids(): string[] {
    return [...this.#keys.keys()];
  }

  /**
   * Seals under the current key. `context` identifies the row; unseal needs the same. Commit the result at
   * once: a rotation waits only seconds for values sealed under the previous key.
   */
  seal(plaintext: Uint8Array, context: string): Buffer {
    const header = Buffer.concat([Buffer.from([VERSION]), Buffer.from(this.#current, 'hex')]);
    const nonce = randomSecret(NONCE_BYTES);
    const cipher = createCipheriv('aes-256-gcm', this.#key(this.#current), nonce, {
      authTagLength: TAG_BYTES,
    });
    cipher.setAAD(Buffer.concat([header, Buffer.from(context, 'utf8')]));
    return Buffer.concat([header, nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
  }

  /** Opens a sealed value. Throws AppError `data_corrupted` if a bit, the key or the context differs. */
  unseal(sealed: Uint8Array, context: string): Buffer {
    const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength);
    const key = this.#key(this.keyIdOf(bytes));
    if (bytes.length < CIPHERTEXT_AT + TAG_BYTES) throw damaged(`${context}: too short`);
    const nonce = bytes.subarray(SEALED_HEADER_BYTES, CIPHERTEXT_AT);
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.concat([bytes.subarray(0, SEALED_HEADER_BYTES), Buffer.from(context, 'utf8')]));
    decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
    try {
      const opened = decipher.update(bytes.subarray(CIPHERTEXT_AT, bytes.length - TAG_BYTES));
      return Buffer.concat([opened, decipher.final()]);
    } catch (error) {
      throw damaged(`${context}: cannot be decrypted`, error);
    }
  }

  /**
   * The id of the key that a sealed value needs. Throws AppError `data_corrupted` if it is not a sealed
   * value.
   */
  keyIdOf(sealed: Uint8Array): string {
    if (sealed.length < SEALED_HEADER_BYTES || sealed[0] !== VERSION) throw damaged('not a sealed value');
    return Buffer.from(sealed.subarray(1, SEALED_HEADER_BYTES)).toString('hex');
  }

  /** Creates a new key and seals with it from now on; returns its id. It is on disk before it is used. */
  addKey(): string {
    const id = randomSecret(KEY_ID_BYTES).toString('hex');
    const keys = new Map(this.#keys).set(id, randomSecret(KEY_BYTES));
    this.#replace(id, keys);
    return id;
  }

  /** Deletes a key that no longer seals any value (see key-rotation.ts). */
  retire(id: string): void {
    if (id === this.#current) throw new Error(`key ${id} is the current one`);
    const keys = new Map(this.#keys);
    keys.delete(id);
    this.#replace(this.#current, keys);
  }

  #key(id: string): Buffer {
    const key = this.#keys.get(id);
    if (key === undefined) throw damaged(`sealed under master key ${id}, which is not in ${KEY_FILE}`);
    return key;
  }

  /** Atomic: after a power loss, the file is the old or the new one. */
  #replace(current: string, keys: Map<string, Buffer>): void {
    const path = join(this.#dataDir, KEY_FILE);
    const encoded = Object.fromEntries([...keys].map(([id, key]) => [id, key.toString('base64')]));
    const file: KeyFile = { cloud: this.#cloud, current, keys: encoded };
    writeDurableFile(path, `${JSON.stringify(file, null, 2)}\n`, 0o600);
    this.#current = current;
    this.#keys = keys;
  }
}

function damaged(detail: string, cause?: unknown): AppError {
  return new AppError('data_corrupted', 'A sealed value cannot be decrypted', {
    cause: cause ?? new Error(detail),
  });
}
