/**
 * Resolves a key, or both secrets of a session, to a Principal. Valid credentials are cached in
 * memory, so that the usual request costs two look-ups. A change that revokes, rotates, suspends or
 * closes names the cache entries to drop (Change.forgets), and the credential is refused from then
 * on; at other nodes of a cluster within 2 s, when cached rows are read again (metadata/ages.ts).
 */
import { type BucketLimit, NOBODY, type Principal, type Scope } from '../../calls/principal.ts';
import { type Ages, SharedReads } from '../../metadata/ages.ts';
import type { Bus } from '../../metadata/bus.ts';
import { type Changes, WriteBehind } from '../../metadata/change.ts';
import type { Awaitable, Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import type { Sealer } from '../../platform/master-key.ts';
import { accountSuspended } from '../account-errors.ts';
import { apiKeyTextProblem, hashSecret } from '../keys/api-key-text.ts';
import type { AccountStore, CredentialRow, S3SecretRow } from '../store.ts';

/** A session unused for this long ends. */
export const SESSION_IDLE_MS = 7 * 24 * 3600_000;
const MAX_SECRET_LENGTH = 512;
/** Two generations with this many entries each are cached. */
const GENERATION_SIZE = 10_000;

export interface Credentials {
  readonly apiKey?: string;
  readonly session?: SessionSecrets;
}

/** The secrets that a browser sends: either may be missing, and the cookies may belong to another program. */
export interface SessionSecrets {
  /** Every cookie with the session's name: programs on other ports of the host can set some. */
  readonly cookies: readonly string[];
  /** Kept by the page, in storage that is bound to its origin. */
  readonly token: string | undefined;
}

interface Entry {
  /** The hash of the key or of the session's cookie. */
  readonly hash: string;
  readonly principal: Principal;
  /** Infinity: never. */
  readonly expiresAt: number;
  lastSeenAt: number;
  /** See Ages. */
  mark: number;
  /** The secret of an S3 key pair. */
  readonly secret?: string;
}

/** An S3 key pair and its holder. */
export interface S3Key {
  readonly principal: Principal;
  readonly secret: string;
}

/** A cache key, and how to read the entry on a miss. */
interface Lookup {
  readonly name: string;
  readonly find: () => Awaitable<FoundRow | undefined>;
}

type FoundRow = CredentialRow & { readonly secret?: string };

export interface AuthenticatorDeps {
  readonly store: AccountStore;
  readonly changes: Changes;
  readonly bus: Pick<Bus, 'onForget'>;
  readonly ages: Ages;
  readonly clock: Clock;
  /** Opens what AccessKeys sealed. */
  readonly sealer: Pick<Sealer, 'unseal'>;
  readonly generationSize?: number;
}

/** The sealing context of an S3 secret. */
export function s3SecretContext(keyId: string): string {
  return `s3-secret:${keyId}`;
}

/** Principal.credentialId of a session; the hash of a cookie is no secret. */
export function sessionCredentialId(cookieHash: string): string {
  return `session-${cookieHash}`;
}

export class Authenticator {
  readonly #store: AccountStore;
  readonly #clock: Clock;
  readonly #ages: Ages;
  readonly #reads: SharedReads<string, Entry>;
  readonly #sealer: Pick<Sealer, 'unseal'>;
  readonly #generationSize: number;
  // Least-recently-used at the cost of a plain Map: a used entry moves to the young generation, and when that
  // is full the old one is dropped whole.
  #young = new Map<string, Entry>();
  #old = new Map<string, Entry>();
  /** Hashes of recent secrets, valid or not: a hash never changes. */
  readonly #hashes = new Map<string, string>();
  /** Uses to store, by the hash of the secret. */
  readonly #uses: WriteBehind<string, Entry>;
  #presetHash: string | undefined;

  constructor(deps: AuthenticatorDeps) {
    this.#store = deps.store;
    this.#uses = new WriteBehind({ changes: deps.changes, statementOf: (_, entry) => this.#touch(entry) });
    this.#clock = deps.clock;
    this.#ages = deps.ages;
    this.#reads = new SharedReads(deps.ages);
    this.#sealer = deps.sealer;
    this.#generationSize = deps.generationSize ?? GENERATION_SIZE;
    const { bus } = deps;
    bus.onForget('account', (id) =>
      this.#forget(({ principal }) => id === null || principal.accountId === id),
    );
    bus.onForget('credential', (id) =>
      this.#forget(({ principal }) => id === null || principal.credentialId === id),
    );
  }

  /**
   * The holder of the key, else of the session; NOBODY if neither is sent. Throws or rejects with
   * `invalid_api_key`, `invalid_session` (unknown, expired or ended), `incomplete_session` (a
   * secret is missing, or the cookie is not this session's) or `account_suspended`.
   */
  authenticate(credentials: Credentials): Awaitable<Principal> {
    const { apiKey, session } = credentials;
    if (apiKey !== undefined) return this.#byKey(apiKey);
    if (session !== undefined) return this.#bySession(session);
    return NOBODY;
  }

  /**
   * The holder of the key with this id, for links created with it: using the link counts as using
   * the key. Throws or rejects like `authenticate`.
   */
  holderOf(keyId: string): Awaitable<Principal> {
    return (
      this.#remembered(keyId) ??
      this.#lookUp('key', { name: keyId, find: () => this.#store.keyHolderById(keyId) }).then(principalOf)
    );
  }

  /**
   * The holder of an S3 key pair, and the secret for checking signatures. Rejects like
   * `authenticate`.
   */
  async s3KeyOf(accessKeyId: string): Promise<S3Key> {
    const known = this.#rememberedEntry(accessKeyId);
    if (known?.secret !== undefined) return { principal: known.principal, secret: known.secret };
    const find = async () => {
      const row = await this.#store.s3KeyHolder(accessKeyId);
      return row && { ...row, secret: this.#unsealed(row) };
    };
    const { principal, secret = '' } = await this.#lookUp('key', { name: accessKeyId, find });
    return { principal, secret };
  }

  #unsealed({ credential_id: keyId, s3_sealed_secret: sealed }: CredentialRow & S3SecretRow): string {
    return Buffer.from(this.#sealer.unseal(sealed, s3SecretContext(keyId))).toString();
  }

  /**
   * False once the key or session of `principal` has ended or its account is suspended or closed: for
   * connections that outlast a request. Idle expiry of the session does not count, because it is in use.
   */
  async isCurrent({ via, credentialId }: Principal): Promise<boolean> {
    if (via !== 'key' && via !== 'session') return true;
    return this.#store.isCredentialGood(via, credentialId.replace(/^session-/, ''), this.#clock.now());
  }

  /** Accepts this key despite its format, because the operator chose it. */
  allowPresetKey(key: string): void {
    this.#presetHash = hashSecret(key);
  }

  /** Stores the last uses collected since the last call. On failure they are kept for the next one. */
  flush(): Promise<void> {
    return this.#uses.flush();
  }

  #byKey(key: string): Awaitable<Principal> {
    if (key.length > MAX_SECRET_LENGTH) throw invalidKey();
    const hash = this.#hashOf(key);
    const known = this.#remembered(hash);
    if (known !== undefined && known.via === 'key') return known;
    if (hash !== this.#presetHash) assertKeyText(key);
    return this.#lookUp('key', { name: hash, find: () => this.#store.keyHolder(hash) }).then(principalOf);
  }

  #bySession({ cookies, token }: SessionSecrets): Awaitable<Principal> {
    if (token === undefined) throw tokenMissing();
    if (token.length > MAX_SECRET_LENGTH) throw invalidSession();
    const hash = this.#hashOf(token);
    const known = this.#remembered(hash);
    if (known !== undefined && known.via === 'session') return withCookie(known, cookies);
    const find = () => this.#store.sessionHolder(hash);
    return this.#lookUp('session', { name: hash, find }).then((entry) =>
      withCookie(entry.principal, cookies),
    );
  }

  // Hashing costs more than the rest of a usual look-up.
  #hashOf(secret: string): string {
    const known = this.#hashes.get(secret);
    if (known !== undefined) return known;
    const hash = hashSecret(secret);
    if (this.#hashes.size >= this.#generationSize) this.#hashes.clear();
    this.#hashes.set(secret, hash);
    return hash;
  }

  /** `name`: the hash of a secret, or the id of a key. */
  #remembered(name: string): Principal | undefined {
    return this.#rememberedEntry(name)?.principal;
  }

  #rememberedEntry(name: string): Entry | undefined {
    let entry = this.#young.get(name);
    if (entry === undefined) {
      entry = this.#old.get(name);
      if (entry === undefined) return undefined;
      this.#remember(name, entry);
    }
    const now = this.#clock.now();
    const isTrusted = this.#ages.isTrusted(entry.mark);
    if (!isTrusted) this.#ages.rereads++;
    if (!isTrusted || isOver(entry, now)) {
      this.#young.delete(name);
      this.#old.delete(name);
      return undefined;
    }
    entry.lastSeenAt = now;
    this.#uses.note(entry.hash, entry);
    return entry;
  }

  /** Looks up a credential, once for concurrent requests. */
  #lookUp(via: 'key' | 'session', { name, find }: Lookup): Promise<Entry> {
    return this.#reads.run(
      `${via} ${name}`,
      async () => this.#entryOf(via, await find()),
      (entry, mark) => {
        entry.mark = mark;
        this.#remember(name, entry);
      },
    );
  }

  #entryOf(via: 'key' | 'session', row: FoundRow | undefined): Entry {
    const refuse = via === 'key' ? invalidKey : invalidSession;
    if (row === undefined) throw refuse();
    const entry: Entry = {
      hash: row.secret_hash,
      principal: toPrincipal(row, via),
      expiresAt: row.expires_at ?? Number.POSITIVE_INFINITY,
      lastSeenAt: row.last_seen_at,
      mark: 0,
      ...(row.secret !== undefined && { secret: row.secret }),
    };
    const now = this.#clock.now();
    if (isOver(entry, now)) throw refuse();
    if (row.is_active === 0) throw accountSuspended(row.suspended_reason);
    entry.lastSeenAt = now;
    this.#uses.note(entry.hash, entry);
    return entry;
  }

  #remember(name: string, entry: Entry): void {
    if (this.#young.size >= this.#generationSize) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(name, entry);
  }

  #forget(matches: (entry: Entry) => boolean): void {
    // A row read before the change must not be cached after it.
    this.#reads.forget();
    for (const generation of [this.#young, this.#old]) {
      for (const [name, entry] of generation) {
        if (matches(entry)) generation.delete(name);
      }
    }
  }

  #touch(entry: Entry): Statement {
    return entry.principal.via === 'session'
      ? this.#store.touchSession(entry.hash, entry.lastSeenAt)
      : this.#store.touchKey(entry.hash, entry.lastSeenAt);
  }
}

const principalOf = ({ principal }: Entry): Principal => principal;

function isOver(entry: Entry, now: number): boolean {
  if (now >= entry.expiresAt) return true;
  return entry.principal.via === 'session' && now - entry.lastSeenAt >= SESSION_IDLE_MS;
}

/** The caller with a credential. */
export function toPrincipal(row: CredentialRow, via: 'key' | 'session'): Principal {
  const scopes = JSON.parse(row.scopes) as Scope[];
  const bucketLimits = row.bucket_limits === null ? null : (JSON.parse(row.bucket_limits) as BucketLimit[]);
  return Object.freeze({
    accountId: row.account_id,
    username: row.username,
    canonicalId: row.canonical_id ?? '',
    // A key with bucket limits never carries its holder's administrator rights.
    isAdmin: row.is_admin === 1 && bucketLimits === null && scopes.includes('*'),
    isAuditor: row.is_auditor === 1 && row.is_admin === 0,
    scopes,
    bucketLimits,
    via,
    keyExpiresAt: via === 'key' ? row.expires_at : null,
    credentialId: via === 'key' ? row.credential_id : sessionCredentialId(row.credential_id),
  });
}

function invalidKey(): AppError {
  return new AppError('invalid_api_key', 'The API key is unknown, expired or revoked');
}

/** Throws `invalid_api_key` for text that cannot be a key. Does not reveal whether one exists. */
function assertKeyText(key: string): void {
  const problem = apiKeyTextProblem(key);
  if (problem === undefined) return;
  if (!key.startsWith('clk_')) throw invalidKey();
  throw new AppError('invalid_api_key', `This API key is mistyped: ${problem}`, {
    hint: 'Copy the whole key again, without spaces or quotes',
  });
}

/** `principal` if one of the cookies belongs to its session. Throws `incomplete_session`. */
function withCookie(principal: Principal, cookies: readonly string[]): Principal {
  const isOwn = (cookie: string) => sessionCredentialId(hashSecret(cookie)) === principal.credentialId;
  if (cookies.some(isOwn)) return principal;
  throw new AppError(
    'incomplete_session',
    cookies.length === 0
      ? 'The cookie of this session is missing'
      : 'The session cookie was replaced after the log-in',
    {
      hint: 'Log in again. Programs on other ports of this host can replace cookies, but gain no access that way',
    },
  );
}

function tokenMissing(): AppError {
  return new AppError('incomplete_session', 'A session cookie alone does not authenticate', {
    hint:
      'Send the session_token of the log-in as Cloudlet-Session, or an API key as X-API-Key. For a file that a ' +
      'browser opens, use GET /api/storage/{id}/cdn-url, or a ticket of POST /api/account/tickets',
  });
}

function invalidSession(): AppError {
  return new AppError('invalid_session', 'The session has ended; log in again');
}
