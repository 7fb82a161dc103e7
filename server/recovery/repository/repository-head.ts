/**
 * The head of a repository, `repository.json`: its id, and its key, sealed under the recovery key
 * that people keep.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync } from 'node:crypto';
import { AppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { Target } from './target.ts';

const FORMAT = 1;
export const HEAD_FILE = 'repository.json';
/** Maximum reads of the head; two consecutive ones must be equal. */
const MOST_READS = 6;

/** `repository.json`. */
interface Head {
  readonly format: number;
  readonly repository_id: string;
  /** Check value of the repository's key: distinguishes a wrong key from damage. */
  readonly key_check: string;
  /** `nonce (12) · AES-256-GCM(key) · tag (16)`, base64; its key is HKDF-SHA-256 of the recovery key. */
  readonly sealed_key: string;
}

export interface RepositoryKeys {
  /** The repository's own key, 32 bytes: opens everything. */
  readonly key: Uint8Array;
  readonly repositoryId: string;
}

/** Creates a repository; `key`: 32 bytes. undefined: one already exists. */
export async function createRepository(
  target: Target,
  { key, recoveryKey }: { readonly key: Uint8Array; readonly recoveryKey: Uint8Array },
): Promise<RepositoryKeys | undefined> {
  const repositoryId = randomSecret(16).toString('hex');
  const head: Head = {
    format: FORMAT,
    repository_id: repositoryId,
    key_check: checkOf(key),
    sealed_key: sealKey(key, { repositoryId, recoveryKey }).toString('base64'),
  };
  const isNew = await target.create(HEAD_FILE, Buffer.from(`${JSON.stringify(head, null, 2)}\n`));
  if (!isNew) return undefined;
  await target.sync();
  return { key, repositoryId };
}

/** undefined: none. Throws `target_in_use` if it belongs to another cloud, an Error for another format. */
export async function findRepository(target: Target, key: Uint8Array): Promise<RepositoryKeys | undefined> {
  const head = await readHead(target);
  if (head === undefined) return undefined;
  if (head.key_check === checkOf(key)) return { key, repositoryId: head.repository_id };
  throw new AppError('target_in_use', `${target.location} contains the recovery points of another cloud`, {
    hint: 'Give this cloud its own target with CLOUDLET_RECOVERY_TARGET',
  });
}

/**
 * The repository's key, opened with the recovery key. Throws if the recovery key is wrong or there
 * is no repository.
 */
export async function unlockRepository(target: Target, recoveryKey: Uint8Array): Promise<RepositoryKeys> {
  const head = await readHead(target);
  if (head === undefined) throw new Error(`${target.location} contains no recovery points of Cloudlet`);
  const { repository_id: repositoryId } = head;
  const sealed = Buffer.from(head.sealed_key, 'base64');
  return { key: openKey(sealed, { repositoryId, recoveryKey }), repositoryId };
}

/** Digest of the key slot. Throws if there is no repository. */
export async function slotDigest(target: Target): Promise<string> {
  const head = await readHead(target);
  if (head === undefined) throw new Error(`${target.location} contains no recovery points of Cloudlet`);
  return createHash('sha256').update(`${head.repository_id} ${head.sealed_key}`).digest('hex');
}

/**
 * The text of two consecutive reads that agree: a read corrupted in transit would identify another
 * cloud, repository or key. Throws `target_unavailable` if no two agree.
 */
async function readTwice(target: Target): Promise<string | undefined> {
  let earlier: string | undefined;
  for (let reads = 0; reads < MOST_READS; reads++) {
    const text = (await target.get(HEAD_FILE))?.toString('utf8');
    if (text === undefined || text === earlier) return text;
    earlier = text;
  }
  throw new AppError(
    'target_unavailable',
    `${target.location} cannot be used: repeated reads of ${HEAD_FILE} return different content`,
  );
}

async function readHead(target: Target): Promise<Head | undefined> {
  const text = await readTwice(target);
  if (text === undefined) return undefined;
  let head: Partial<Head>;
  try {
    head = JSON.parse(text) as Partial<Head>;
  } catch {
    throw new Error(`${HEAD_FILE} in ${target.location} is damaged: it is not JSON`);
  }
  if (head.format !== FORMAT) {
    throw new Error(
      `${target.location} has format ${head.format}, this Cloudlet knows ${FORMAT}: use a newer one`,
    );
  }
  if (typeof head.repository_id !== 'string' || typeof head.sealed_key !== 'string') {
    throw new Error(`${HEAD_FILE} in ${target.location} is damaged: a member is missing`);
  }
  return head as Head;
}

function checkOf(key: Uint8Array): string {
  return createHmac('sha256', key).update('cloudlet repository').digest('hex').slice(0, 32);
}

interface Lock {
  readonly repositoryId: string;
  readonly recoveryKey: Uint8Array;
}

function sealKey(key: Uint8Array, lock: Lock): Buffer {
  const nonce = randomSecret(12);
  const cipher = createCipheriv('aes-256-gcm', slotKey(lock), nonce);
  const sealed = Buffer.concat([cipher.update(key), cipher.final()]);
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]);
}

function openKey(sealed: Buffer, lock: Lock): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', slotKey(lock), sealed.subarray(0, 12));
  decipher.setAuthTag(sealed.subarray(-16));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
  } catch {
    throw new Error('the recovery key belongs to another repository');
  }
}

/** No slow key derivation: the recovery key is fully random. */
function slotKey({ repositoryId, recoveryKey }: Lock): Buffer {
  return Buffer.from(hkdfSync('sha256', recoveryKey, repositoryId, 'cloudlet recovery key', 32));
}
