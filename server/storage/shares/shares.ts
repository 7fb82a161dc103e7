/**
 * Shares: links to a file or a folder that anybody can open without an account, and that the owner
 * can list, limit and end at any time. The URL contains a signature under a secret of this cloud,
 * so the rows alone open nothing. A link created by an access key ends with the key and never shows
 * more than the key may read.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type Call, mayTouch, type Principal, permits } from '../../calls/principal.ts';
import { BACKGROUND, type Changes, turnAt, WriteBehind } from '../../metadata/change.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { ScanTurns } from '../../platform/concurrency.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { bucketNotFound } from '../buckets/bucket-errors.ts';
import type { Listing } from '../listing/listing.ts';
import type { Downloads } from '../objects/downloads.ts';
import type { LinkKeys } from '../objects/links.ts';
import type { NewShare, Share } from '../schema.ts';
import { assertObjectName } from '../uploads/upload-fields.ts';
import type { SeenDownloads, ShareRow, ShareSql } from './share-sql.ts';

/** Hashes passwords of links; guesses are slowed per network and link. */
export interface SharePasswords {
  /** Throws `invalid_request` for a password on the operator's blocklist, `overloaded`. */
  hash(password: string, by: { readonly address: string }): Promise<string>;
  /** `target`: the subject that failures are counted for. Throws `rate_limited`, `overloaded`. */
  check(password: string, stored: string, by: { target: string; address: string }): Promise<boolean>;
}

export interface SharesDeps {
  readonly store: ShareSql;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly secret: Uint8Array;
  readonly keys: LinkKeys;
  readonly passwords: SharePasswords;
  readonly listing: Pick<Listing, 'bucketFor'>;
  readonly downloads: Pick<Downloads, 'findNamed'>;
  /** URL of the data origin, `http://host:port`. */
  readonly dataUrl: () => string;
}

/** An open link: the account that pays for the reads, and the shared file or folder. */
export interface OpenShare {
  readonly row: ShareRow;
  readonly holder: Principal;
}

export interface Visit {
  readonly shareId: string;
  readonly signature: string;
  /** From the header Authorization (Basic); undefined: none. */
  readonly password: string | undefined;
  readonly address: string;
}

const MAX_SHARES = 1000;
/** Owners see expired links for this long. */
const KEPT_MS = 30 * 24 * 3600_000;
/** 132 bits in base64url. */
const SIGNATURE_LENGTH = 22;
/** Passwords are hashed again after this time; video players request many ranges. */
const REMEMBERED_MS = 10 * 60_000;
const MAX_REMEMBERED = 1000;

export const isFolderName = (name: string) => name === '' || name.endsWith('/');

export class Shares {
  readonly #deps: SharesDeps;
  readonly #turns = new ScanTurns();
  /** Hash of link and password → when it is forgotten, monotonic. */
  readonly #right = new Map<string, number>();

  /** By row id. Anybody may open a link any number of times, so downloads are not committed one by one. */
  readonly #seen: WriteBehind<number, SeenDownloads>;

  constructor(deps: SharesDeps) {
    this.#deps = deps;
    this.#seen = new WriteBehind({
      changes: deps.changes,
      statementOf: (id, seen) => deps.store.addDownloads(id, seen),
      join: (earlier, { count, at }) => ({ count: earlier.count + count, at }),
    });
  }

  /**
   * Throws `bucket_not_found`, `object_not_found`, `invalid_object_name`, `scope_required`, `quota_exceeded`.
   */
  async create(call: Call & { readonly address: string }, input: NewShare): Promise<Share> {
    const { store, changes, clock, passwords } = this.#deps;
    const { principal, address } = call;
    const { name, password, expires_in, max_downloads = null } = input;
    // The link reads existing content: a key that may only write must not read through it.
    if (!permits(principal, 'storage:read')) throw readsNot();
    if (name !== '') assertObjectName(name);
    const bucket = await this.#shared(principal, input.bucket, name);
    const hash = password === undefined ? null : await passwords.hash(password, { address });
    const keyId = await this.#accessKeyOf(principal);
    return changes.run(call, (change) => {
      const now = clock.now();
      const row: ShareRow = {
        id: 0,
        share_id: newId('shr', clock),
        account_id: principal.accountId,
        bucket_id: bucket.id,
        bucket: bucket.name,
        name,
        key_id: keyId,
        password_hash: hash,
        expires_at: expires_in === undefined ? null : now + expires_in * 1000,
        max_downloads,
        downloads: 0,
        last_at: null,
        created_at: now,
      };
      change.add(turnAt('accounts', principal.accountId));
      // The bucket may have been deleted meanwhile.
      change.add(store.insert(row, MAX_SHARES), (reason) =>
        reason === 'expectation' ? tooMany() : bucketNotFound(bucket.name),
      );
      return this.#present(row);
    });
  }

  /** Newest first; a limited key sees those that it may read. */
  async list(principal: Principal): Promise<Share[]> {
    const { accountId } = principal;
    return this.#turns.walk({ accountId, kind: 'shares' }, undefined, async (inTurn) => {
      const rows = await inTurn(() => this.#deps.store.list(accountId, MAX_SHARES));
      // Signing a thousand links takes some milliseconds, so each list has its own turn of the event loop.
      return inTurn(() => rows.filter((row) => covers(principal, row)).map((row) => this.#present(row)));
    });
  }

  /** Ends the link; new downloads are refused at once. Throws `share_not_found`. */
  end(call: Call, shareId: string): Promise<Share> {
    const { store, changes } = this.#deps;
    return changes.run(call, async (change) => {
      const row = await store.find(shareId);
      if (row?.account_id !== call.principal.accountId || !covers(call.principal, row))
        throw unknown(shareId);
      change.add(store.delete(row.id), () => unknown(shareId));
      return this.#present(row);
    });
  }

  /** Removes links that expired long ago. */
  async sweep(): Promise<void> {
    const { store, changes, clock } = this.#deps;
    await changes.store([store.sweep(clock.now() - KEPT_MS)]);
  }

  /**
   * Checks a visit. Throws `invalid_link` if the URL is wrong or the link has ended,
   * `share_password_required` without the right password, `rate_limited`.
   */
  async open({ shareId, signature, password, address }: Visit): Promise<OpenShare> {
    const { store, keys, clock } = this.#deps;
    const row = this.#isSigned(shareId, signature) ? await store.find(shareId) : undefined;
    if (row === undefined || stateOf(row, clock.now()) !== 'active') throw ended();
    try {
      const keyId = row.key_id ?? (await keys.currentId(row.account_id));
      if (keyId === undefined) throw ended();
      const holder = await keys.holderOf(keyId);
      if (!permits(holder, 'storage:read')) throw ended();
      if (row.password_hash !== null)
        await this.#checkPassword(row, row.password_hash, { password, address });
      return { row, holder };
    } catch (error) {
      if (isAppError(error, 'invalid_api_key') || isAppError(error, 'account_suspended')) throw ended();
      throw error;
    }
  }

  /**
   * Counts a download that begins. Throws `invalid_link` when the link's downloads are used up. Without a
   * limit the count is stored seconds later, and a crash forgets some.
   */
  async count({ row }: OpenShare): Promise<void> {
    const { store, changes, clock } = this.#deps;
    if (row.max_downloads === null) return this.#seen.note(row.id, { count: 1, at: clock.now() });
    await changes.run(BACKGROUND, (change) => {
      change.add(store.count(row.id, clock.now()), ended);
    });
  }

  /**
   * null: the caller acts as the owner, in a session or with the account's own key, which may be
   * replaced.
   */
  async #accessKeyOf({ via, accountId, credentialId }: Principal): Promise<string | null> {
    if (via !== 'key' || credentialId === (await this.#deps.keys.currentId(accountId))) return null;
    return credentialId;
  }

  /** Stores the downloads counted since. */
  flush(): Promise<void> {
    return this.#seen.flush();
  }

  /** The bucket of an existing object, or of a folder. */
  async #shared(principal: Principal, bucketName: string, name: string) {
    const { listing, downloads } = this.#deps;
    const bucket = await listing.bucketFor(principal, bucketName, name);
    if (isFolderName(name)) return bucket;
    const found = await downloads.findNamed(principal, bucket, { name });
    if (found !== undefined && 'content' in found) return bucket;
    throw new AppError('object_not_found', `There is no object ${name} in ${bucketName}`, {
      hint: 'To share a folder, end its name with "/"',
    });
  }

  async #checkPassword(
    row: ShareRow,
    stored: string,
    { password, address }: Pick<Visit, 'password' | 'address'>,
  ): Promise<void> {
    const { passwords, clock } = this.#deps;
    if (password === undefined) throw passwordRequired(row.share_id);
    const known = createHash('sha256').update(`${stored}\n${password}`).digest('base64url');
    if ((this.#right.get(known) ?? 0) > clock.monotonic()) return;
    const target = `share ${row.share_id}`;
    if (!(await passwords.check(password, stored, { target, address }))) throw passwordRequired(row.share_id);
    const [oldest] = this.#right.keys();
    if (this.#right.size >= MAX_REMEMBERED && oldest !== undefined) this.#right.delete(oldest);
    this.#right.set(known, clock.monotonic() + REMEMBERED_MS);
  }

  #present(row: ShareRow): Share {
    const { clock, dataUrl } = this.#deps;
    const seen = this.#seen.latest(row.id);
    const address = `${row.share_id}/${this.#signature(row.share_id)}/${encodeURIComponent(titleOf(row))}`;
    return {
      share_id: row.share_id,
      bucket: row.bucket,
      name: row.name,
      url: `${dataUrl()}/cdn/shared/${address}`,
      state: stateOf(row, clock.now()),
      has_password: row.password_hash !== null,
      expires_at: formatTimeOrNull(row.expires_at),
      max_downloads: row.max_downloads,
      downloads: row.downloads + (seen?.count ?? 0),
      last_download_at: formatTimeOrNull(seen?.at ?? row.last_at),
      created_at: formatTime(row.created_at),
    };
  }

  #isSigned(shareId: string, signature: string): boolean {
    const [given, right] = [Buffer.from(signature), Buffer.from(this.#signature(shareId))];
    return given.length === right.length && timingSafeEqual(given, right);
  }

  #signature(shareId: string): string {
    const digest = createHmac('sha256', this.#deps.secret).update(`share\n${shareId}`).digest('base64url');
    return digest.slice(0, SIGNATURE_LENGTH);
  }
}

/** The last part of the name; clients resolve paths that end in "." or "..". */
export function titleOf({ bucket, name }: Pick<ShareRow, 'bucket' | 'name'>): string {
  const title = name.split('/').findLast((part) => part !== '') ?? bucket;
  return title === '.' || title === '..' ? 'file' : title;
}

function stateOf(row: ShareRow, now: number): Share['state'] {
  if (row.expires_at !== null && row.expires_at <= now) return 'expired';
  return row.max_downloads !== null && row.downloads >= row.max_downloads ? 'used_up' : 'active';
}

function covers(principal: Principal, { bucket, name }: ShareRow): boolean {
  return mayTouch(principal, bucket, name);
}

function ended(): AppError {
  return new AppError('invalid_link', 'The link is wrong or incomplete, or has ended', {
    hint: 'Ask the person who sent you the link for a new one',
  });
}

function unknown(shareId: string): AppError {
  return new AppError('share_not_found', `You have no shared link ${shareId}`);
}

function readsNot(): AppError {
  return new AppError('scope_required', 'A link lets others read: this key lacks the scope storage:read', {
    hint: 'Create the link with a key that has storage:read and storage:write',
  });
}

function tooMany(): AppError {
  return new AppError('quota_exceeded', `An account can have at most ${MAX_SHARES} shared links`, {
    hint: 'Delete links that you no longer need: DELETE /api/shares/{share_id}',
  });
}

function passwordRequired(shareId: string): AppError {
  return new AppError('share_password_required', 'The link needs its password', {
    hint: 'Send the password by HTTP Basic authentication, with any user name',
    headers: { 'www-authenticate': `Basic realm="${shareId}", charset="UTF-8"` },
  });
}
