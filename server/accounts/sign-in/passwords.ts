/**
 * Passwords as argon2id (RFC 9106) in PHC strings. Hashing runs in Node's thread pool; each one takes 46
 * MiB, so few run at once, and the queue is bounded and fair.
 */
import { type Argon2Parameters, argon2, timingSafeEqual } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { AppError, invalidField } from '../../platform/errors.ts';
import { sourceOf } from '../../platform/host/caller-networks.ts';
import { randomSecret } from '../../platform/ids.ts';

export interface PasswordCost {
  readonly memoryKib: number;
  readonly passes: number;
}

/** OWASP ASVS 5, appendix C: m=47104, t=1, p=1. */
const DEFAULT_COST: PasswordCost = { memoryKib: 47104, passes: 1 };
const MAX_RUNNING = 2;
const MAX_WAITING = 100;
const RETRY_AFTER_SECONDS = 5;
const SALT_BYTES = 16;
const TAG_BYTES = 32;
const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

export class Passwords {
  readonly #cost: PasswordCost;
  readonly #blocklist: ReadonlySet<string>;
  readonly #queue = new FairQueue({ running: MAX_RUNNING, waiting: MAX_WAITING, refusal: overloaded });
  readonly #dummy: string;
  #computed = 0;

  /** `blocklist`: see readBlocklist. */
  constructor(deps: { readonly cost?: PasswordCost; readonly blocklist?: ReadonlySet<string> } = {}) {
    this.#cost = deps.cost ?? DEFAULT_COST;
    this.#blocklist = deps.blocklist ?? new Set();
    this.#dummy = this.#render(randomSecret(SALT_BYTES), randomSecret(TAG_BYTES));
  }

  /** Number of hashes computed since the start. */
  get computed(): number {
    return this.#computed;
  }

  /**
   * The PHC string to store. Throws `invalid_request` for a password on the operator's blocklist, or a common
   * one of an administrator; `overloaded` when the queue is full.
   */
  async hash(password: string, { address = '', isAdmin = false }: Hashing = {}): Promise<string> {
    const folded = foldPassword(password);
    if (this.#blocklist.has(folded) || (isAdmin && (await commonPasswords()).has(folded))) {
      throw invalidField('password', 'is too common; choose another');
    }
    return await this.#queue.run(sourceOf(address), async () => {
      const salt = randomSecret(SALT_BYTES);
      const tag = await this.#derive(password, { salt, tagBytes: TAG_BYTES, parallelism: 1, ...this.#cost });
      return this.#render(salt, tag);
    });
  }

  /**
   * Whether `password` matches `stored`. Null or empty (no such account, no password) costs the
   * same and is false. Throws `overloaded` like hash().
   */
  async verify(password: string, stored: string | null, by: Caller = {}): Promise<boolean> {
    return await this.#queue.run(sourceOf(by.address ?? ''), async () => {
      by.admit?.();
      const known = parse(stored);
      const target = known ?? parse(this.#dummy);
      if (target === undefined) throw new Error('the dummy hash has no PHC form');
      const tag = await this.#derive(password, { ...target, tagBytes: target.tag.length });
      return timingSafeEqual(tag, target.tag) && known !== undefined;
    });
  }

  #render(salt: Buffer, tag: Buffer): string {
    const { memoryKib, passes } = this.#cost;
    return `$argon2id$v=19$m=${memoryKib},t=${passes},p=1$${base64(salt)}$${base64(tag)}`;
  }

  #derive(password: string, how: Derivation): Promise<Buffer> {
    this.#computed++;
    const parameters: Argon2Parameters = {
      // Different systems may compose the same characters differently (RFC 8265 §4.2).
      message: Buffer.from(password.normalize('NFC')),
      nonce: how.salt,
      memory: how.memoryKib,
      passes: how.passes,
      parallelism: how.parallelism,
      tagLength: how.tagBytes,
    };
    return new Promise((resolve, reject) => {
      argon2('argon2id', parameters, (error, tag) => (error ? reject(error) : resolve(tag)));
    });
  }
}

/** Owner of the new password. */
interface Hashing {
  /** The caller's address, for fair queueing; empty: the operator's. */
  readonly address?: string | undefined;
  readonly isAdmin?: boolean;
}

let common: Promise<ReadonlySet<string>> | undefined;

/** About 50,000 passwords from published leaks, read when the first administrator is created. */
function commonPasswords(): Promise<ReadonlySet<string>> {
  common ??= import('@zxcvbn-ts/language-common').then(
    ({ dictionary }) => new Set(dictionary['passwords-common'].map(foldPassword)),
  );
  return common;
}

/** The source of a password check. */
interface Caller {
  readonly address?: string;
  /**
   * Runs when the check leaves the queue, just before hashing, and may throw: so a throttle
   * includes the failures of earlier checks in the queue.
   */
  readonly admit?: () => void;
}

function overloaded(): AppError {
  return new AppError('overloaded', 'Too many password checks are in progress', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

interface Derivation extends PasswordCost {
  readonly salt: Buffer;
  readonly parallelism: number;
  readonly tagBytes: number;
}

/** PHC strings have base64 without padding. */
function base64(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

function parse(stored: string | null) {
  const match = PHC.exec(stored ?? '');
  if (match === null) return undefined;
  const [, memory, passes, parallelism, salt = '', tag = ''] = match;
  return {
    memoryKib: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    salt: Buffer.from(salt, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  };
}

/** Size limit of the list, which is kept in memory. */
const MAX_BYTES = 16 * 2 ** 20;

/** Normalized for comparison with the blocklist. */
function foldPassword(password: string): string {
  return password.normalize('NFC').toLowerCase();
}

/** One password per line, in UTF-8; empty path: none. Throws a one-line Error with the file's name. */
export function readBlocklist(path: string): ReadonlySet<string> {
  if (path === '') return new Set();
  try {
    if (statSync(path).size > MAX_BYTES) throw new Error(`it is larger than ${MAX_BYTES / 2 ** 20} MiB`);
    const lines = new TextDecoder().decode(readFileSync(path)).split(/\r?\n/);
    return new Set(lines.filter((line) => line !== '').map(foldPassword));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`CLOUDLET_PASSWORD_BLOCKLIST: ${path} cannot be read: ${why}`, { cause });
  }
}

/**
 * Runs expensive work, few tasks at a time, shared fairly among its sources (max-min fairness):
 * sources are served round-robin, and when the queue is full the source with the most waiting tasks
 * loses its newest one. So a flooding source delays only itself, and a request from another source
 * waits for at most one task of each other source.
 */
interface Waiter {
  readonly begin: () => void;
  readonly refuse: (error: Error) => void;
}

interface FairQueueLimits {
  readonly running: number;
  readonly waiting: number;
  /** The error of a request that is dropped from the queue. */
  readonly refusal: () => Error;
}

export class FairQueue {
  readonly #limits: FairQueueLimits;
  /** Keyed by source, in round-robin order; no queue is empty. */
  readonly #queues = new Map<string, Waiter[]>();
  #waiting = 0;
  #running = 0;

  constructor(limits: FairQueueLimits) {
    this.#limits = limits;
  }

  /** Runs `work` when it is the turn of `source`. Throws the refusal if the queue is full. */
  async run<T>(source: string, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#limits.running) this.#running++;
    else await this.#wait(source);
    try {
      return await work();
    } finally {
      // The finished task passes its slot on, so #running does not change.
      const next = this.#next();
      if (next) next.begin();
      else this.#running--;
    }
  }

  #wait(source: string): Promise<void> {
    const own = this.#queues.get(source) ?? [];
    if (this.#waiting >= this.#limits.waiting) this.#dropNewest(own.length);
    const turn = new Promise<void>((begin, refuse) => own.push({ begin, refuse }));
    this.#queues.set(source, own);
    this.#waiting++;
    return turn;
  }

  /**
   * Drops the newest task of the busiest source, to make room for a task of a source with `own` waiting
   * tasks.
   */
  #dropNewest(own: number): void {
    let longest: Waiter[] = [];
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue;
    if (longest.length <= own + 1) throw this.#limits.refusal();
    longest.pop()?.refuse(this.#limits.refusal());
    this.#waiting--;
  }

  #next(): Waiter | undefined {
    const [first] = this.#queues;
    if (first === undefined) return undefined;
    const [source, queue] = first;
    const waiter = queue.shift();
    this.#waiting--;
    this.#queues.delete(source);
    if (queue.length > 0) this.#queues.set(source, queue);
    return waiter;
  }
}
