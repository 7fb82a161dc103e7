/**
 * Two keys open a repository: its own, which this cloud stores sealed, so that points can be
 * created and verified unattended; and the recovery key, which a person keeps in case the cloud is
 * lost. This cloud stores the recovery key only until an administrator has confirmed having it.
 */

import { createHash } from 'node:crypto';
import type { Changes, Recorder } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, invalidField, isAppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { RecoveryKey } from '../schema.ts';
import { RECOVERY_KEY, type RecoveryStore } from '../store.ts';
import { Repository } from './repository.ts';
import {
  createRepository,
  findRepository,
  type RepositoryKeys,
  unlockRepository,
} from './repository-head.ts';
import type { Target } from './target.ts';

/** Name among this cloud's secrets. */
const REPOSITORY_KEY = 'recovery-repository';

export interface RecoveryKeysDeps {
  readonly secrets: {
    get(name: string): Promise<Buffer>;
    forget(name: string): Promise<void>;
  };
  readonly target: Target;
  readonly store: RecoveryStore;
  readonly changes: Changes;
  readonly clock: Clock;
}

export class RecoveryKeys {
  readonly #deps: RecoveryKeysDeps;
  #opening: Promise<Repository> | undefined;

  constructor(deps: RecoveryKeysDeps) {
    this.#deps = deps;
  }

  /**
   * Opens the repository, or creates it if there is none. Throws `target_unavailable` if there
   * should be one: an unmounted disk must not be mistaken for an empty one. Throws `target_in_use`
   * if the repository belongs to another cloud.
   */
  open(): Promise<Repository> {
    // Concurrent calls share one creation.
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #open(): Promise<Repository> {
    const { secrets, target, store } = this.#deps;
    const found = await this.find();
    if (found !== undefined) return found;
    if ((await store.newestSound(target.location)) !== undefined) {
      throw new AppError('target_unavailable', `${target.location} contains none of its recovery points`, {
        hint: 'Mount it. If it is lost, `cloudlet recovery fsck` marks its points as damaged, and the next point starts a new repository',
      });
    }
    const key = await secrets.get(REPOSITORY_KEY);
    const recoveryKey = await secrets.get(RECOVERY_KEY);
    const created = await createRepository(target, { key, recoveryKey });
    if (created !== undefined) return new Repository(target, created);
    // Another process created the repository first.
    const other = await this.find();
    if (other !== undefined) return other;
    throw new AppError('target_unavailable', `${target.location} has just been emptied`, {
      hint: 'Try again',
    });
  }

  /** undefined: none. Throws `target_unavailable`, and `target_in_use` if it belongs to another cloud. */
  async find(): Promise<Repository | undefined> {
    const { target } = this.#deps;
    const found = await this.#find();
    return found && new Repository(target, found);
  }

  /** Keys of the repository, for another process that reads it. Throws `target_unavailable`. */
  async lend(): Promise<RepositoryKeys> {
    const found = await this.#find();
    if (found !== undefined) return found;
    throw new AppError('target_unavailable', `${this.#deps.target.location} contains no recovery points`);
  }

  async #find(): Promise<RepositoryKeys | undefined> {
    const { secrets, target } = this.#deps;
    return findRepository(target, await secrets.get(REPOSITORY_KEY)).catch(unavailable);
  }

  /** True when the target is reachable but does not contain the points created there. */
  async isLost(): Promise<boolean> {
    const { target, store } = this.#deps;
    return (await this.find()) === undefined && (await store.newestSound(target.location)) !== undefined;
  }

  /** Throws `recovery_key_taken`. */
  async show(): Promise<RecoveryKey> {
    const { id } = await this.open();
    const { secrets, store } = this.#deps;
    if (await store.isKeyTaken(id)) {
      throw new AppError(
        'recovery_key_taken',
        'The recovery key was confirmed and is no longer stored here',
        {
          hint: 'Ask the person who has the key; `cloudlet recovery verify --from` checks it',
        },
      );
    }
    return { recovery_key: recoveryKeyText(await secrets.get(RECOVERY_KEY)), taken: false };
  }

  /** Throws `invalid_request` for a wrong key. */
  async confirm(call: Recorder, text: string): Promise<RecoveryKey> {
    const { id } = await this.open();
    const { secrets, target, store, changes, clock } = this.#deps;
    try {
      await unlockRepository(target, readRecoveryKey(text));
    } catch (error) {
      throw invalidField('recovery_key', (error as Error).message);
    }
    const confirmed = await changes.run(call, (change) => {
      change.add(store.setKeyTaken(id, clock.now()));
      return { taken: true };
    });
    await secrets.forget(RECOVERY_KEY);
    return confirmed;
  }
}

function unavailable(error: unknown): never {
  if (isAppError(error)) throw error;
  throw new AppError(
    'target_unavailable',
    `The recovery target is unavailable: ${(error as Error).message}`,
    {
      cause: error,
    },
  );
}

/**
 * The recovery key, with which a person opens a repository of recovery points when the cloud is lost.
 *
 * 32 random bytes as text: `clr-`, 52 characters of Crockford's base32 (most significant first, padded with
 * zero bits at the end) and 4 more of checksum, the first 20 bits of the SHA-256 of the bytes; in groups of
 * seven, so that it can be read aloud. Case, spaces and dashes do not matter; o, i and l count as 0, 1 and 1.
 */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const KEY_BYTES = 32;
const KEY_DIGITS = 52;
const CHECK_DIGITS = 4;

export function newRecoveryKey(): Buffer {
  return randomSecret(KEY_BYTES);
}

export function recoveryKeyText(key: Uint8Array): string {
  const digits = toDigits(key, KEY_DIGITS) + checksum(key);
  return `clr-${digits.match(/.{7}/g)?.join('-')}`;
}

/** Throws an Error that names the problem with the text. */
export function readRecoveryKey(text: string): Buffer {
  const plain = text
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '')
    .replace(/^clr/, '')
    .replace(/o/g, '0')
    .replace(/[il]/g, '1');
  if (plain.length !== KEY_DIGITS + CHECK_DIGITS || [...plain].some((digit) => !ALPHABET.includes(digit))) {
    throw new Error('a recovery key is clr- and 56 letters and digits in groups of seven');
  }
  const key = fromDigits(plain.slice(0, KEY_DIGITS));
  if (recoveryKeyText(key).replace(/-/g, '') !== `clr${plain}`) {
    throw new Error('the recovery key is mistyped: its checksum, the last 4 characters, does not match');
  }
  return key;
}

function checksum(key: Uint8Array): string {
  return toDigits(createHash('sha256').update(key).digest(), CHECK_DIGITS);
}

/** The first `count` digits of 5 bits. */
function toDigits(bytes: Uint8Array, count: number): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0'))
    .join('')
    .padEnd(count * 5, '0');
  const digit = (i: number) => ALPHABET.charAt(Number.parseInt(bits.slice(i * 5, i * 5 + 5), 2));
  return Array.from({ length: count }, (_, i) => digit(i)).join('');
}

function fromDigits(text: string): Buffer {
  const bits = [...text].map((digit) => ALPHABET.indexOf(digit).toString(2).padStart(5, '0')).join('');
  const byte = (i: number) => Number.parseInt(bits.slice(i * 8, i * 8 + 8), 2);
  return Buffer.from(Array.from({ length: KEY_BYTES }, (_, i) => byte(i)));
}
