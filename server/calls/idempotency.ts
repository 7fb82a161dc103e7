/**
 * Idempotency-Key: one effect and one response, however often a change is repeated within 24 h. The
 * response is stored in the same commit as the effect (see metadata/change.ts), so that a crash
 * cannot come between them. Races are decided in memory, and between nodes by that commit: a
 * request refused by the record or the effect of another node looks once more for the stored
 * response. Each credential has its own keys: a response may contain data that another credential
 * of the account must not see. Only the account's own key passes them to its successor, so that a
 * retry after a rotation finds its response. Bodies may contain secrets (a new API key) and are
 * therefore sealed, together with the request's fingerprint, from which a password in it could be
 * guessed.
 */
import { type Awaitable, CommitRejected, type Metadata, type Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import type { Sealer } from '../platform/master-key.ts';
import { ALONE, type Membership } from '../platform/membership.ts';
import type { IdempotencyRow, IdempotencyStore, UncountedIdempotencyRow } from './idempotency-store.ts';
import { rowBytes } from './idempotency-store.ts';
import {
  countEarlier,
  keptForm,
  MAX_ACCOUNT_BYTES,
  type StoredResponse,
  TrimSchedule,
} from './kept-answers.ts';
import type { Principal } from './principal.ts';

/** Rows of an earlier version counted per commit. */
const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000;

export interface IdempotencyDeps {
  readonly metadata: Metadata;
  readonly store: IdempotencyStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Default: no other nodes. */
  readonly membership?: Pick<Membership, 'isShared'>;
  /** Maximum stored responses per account; above it, the oldest are deleted. */
  readonly maxKept: number;
  /** Maximum bytes of stored responses per account. */
  readonly maxKeptBytes?: number;
  /** See ApiKeys.ownKeyState. */
  readonly ownKeyState: (caller: Principal) => Promise<'current' | 'ending' | null>;
}

/** Caller, route and Idempotency-Key of a request. */
export interface Asked {
  readonly caller: Principal;
  /** Identifies a caller without a credential. */
  readonly address: string;
  readonly route: string;
  readonly key: string;
}

interface AttemptName {
  readonly accountId: number;
  /** The credential and the route. */
  readonly scope: string;
  readonly key: string;
}

export class Idempotency {
  readonly #deps: IdempotencyDeps;
  readonly #running = new Set<string>();
  /**
   * Responses of accepted operations that are still running: they must be found even if their rows
   * are deleted.
   */
  readonly #accepted = new Map<string, Known>();
  readonly #trims: TrimSchedule;

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps;
    this.#trims = new TrimSchedule({ rows: deps.maxKept, bytes: maxBytes(deps) });
  }

  /**
   * Throws `idempotency_in_flight` while the first request with this key runs, and
   * `idempotency_mismatch` to an older key of the account if its current one has used this. The
   * caller must call end() on the result.
   */
  async begin({ caller, address, route, key }: Asked): Promise<Attempt> {
    const state = await this.#deps.ownKeyState(caller);
    const { accountId } = caller;
    const own = { accountId, key, scope: `account:${accountId} ${route}` };
    if (state === 'ending') await this.#assertUnknown(own);
    const credential = caller.via === 'nobody' ? `address:${address}` : caller.credentialId;
    const name = state === 'current' ? own : { accountId, key, scope: `${credential} ${route}` };
    const id = `${name.scope} ${name.key}`;
    if (this.#running.has(id)) {
      throw new AppError(
        'idempotency_in_flight',
        'The first request with this Idempotency-Key is still running',
      );
    }
    this.#running.add(id);
    const attempt = new Attempt(this.#deps, name, {
      isTrimDue: (bytes) => this.#trims.isDue(accountId, bytes),
      accepted: () => this.#accepted.get(id),
      accept: (known) => {
        this.#accepted.set(id, known);
        return () => this.#accepted.delete(id);
      },
      release: () => this.#running.delete(id),
    });
    try {
      await attempt.load();
    } catch (error) {
      attempt.end();
      throw error;
    }
    return attempt;
  }

  /** An older API key may no longer read the response of the current one, and must not repeat its effect. */
  async #assertUnknown(name: AttemptName): Promise<void> {
    const { store, clock } = this.#deps;
    if (!(await store.find(name, clock.now() - IDEMPOTENCY_TTL_MS))) return;
    throw new AppError(
      'idempotency_mismatch',
      "This Idempotency-Key was used with the account's current key",
      {
        hint: 'Retry with the current API key',
      },
    );
  }

  /** Deletes responses older than 24 h. */
  async sweep(): Promise<void> {
    const { metadata, store, clock } = this.#deps;
    await metadata.commit([store.deleteOlderThan(clock.now() - IDEMPOTENCY_TTL_MS)]);
  }

  /** See countEarlier() of kept-answers.ts. */
  async countEarlier(): Promise<void> {
    const { metadata, store } = this.#deps;
    const shorten = (row: UncountedIdempotencyRow) => this.#shorten(row);
    await countEarlier({ metadata, store, shorten, maxBytes: maxBytes(this.#deps) });
  }

  async #shorten(row: UncountedIdempotencyRow): Promise<Statement> {
    const { store, sealer } = this.#deps;
    const stored = await store.find(row, 0);
    const context = contextOf(row);
    if (stored === undefined) return store.count(row);
    const { fingerprint, ...response } = parse(stored.status, sealer.unseal(stored.sealed_body, context));
    const text = `${fingerprint}\n${keptForm(response).body}`;
    return store.count(row, sealer.seal(Buffer.from(text, 'utf8'), context));
  }
}

function maxBytes({ maxKeptBytes = MAX_ACCOUNT_BYTES }: IdempotencyDeps): number {
  return maxKeptBytes;
}

function contextOf({ scope, key }: Pick<AttemptName, 'scope' | 'key'>): string {
  return `idempotency:${scope}:${key}`;
}

/** Parses an unsealed text: the fingerprint, a newline, the body. */
function parse(status: number, unsealed: Uint8Array): Known {
  const text = Buffer.from(unsealed).toString('utf8');
  const end = text.indexOf('\n');
  return { fingerprint: text.slice(0, end), status, body: text.slice(end + 1) };
}

interface AttemptHooks {
  /** True if the account's oldest responses should be removed with the next one stored. */
  readonly isTrimDue: (bytes: number) => boolean;
  /** The response of the operation that runs under this key. */
  readonly accepted: () => Known | undefined;
  /** Keeps the response in memory; the returned function releases it. */
  readonly accept: (known: Known) => () => void;
  readonly release: () => void;
}

interface Known extends StoredResponse {
  readonly fingerprint: string;
}

export class Attempt {
  readonly #deps: IdempotencyDeps;
  readonly #name: AttemptName;
  readonly #hooks: AttemptHooks;
  #known: Known | undefined;
  #fingerprint: string | undefined;
  /** The body stored with the effect; null: none yet. */
  #recorded: string | null = null;
  /** The sealed body that record() created last. */
  #sealed: Uint8Array | null = null;

  constructor(deps: IdempotencyDeps, name: AttemptName, hooks: AttemptHooks) {
    this.#deps = deps;
    this.#name = name;
    this.#hooks = hooks;
  }

  async load(): Promise<void> {
    this.#known = this.#hooks.accepted();
    if (this.#known) return;
    const row = await this.#find();
    if (row !== undefined) this.#known = this.#read(row);
  }

  #find(): Awaitable<IdempotencyRow | undefined> {
    return this.#deps.store.find(this.#name, this.#deps.clock.now() - IDEMPOTENCY_TTL_MS);
  }

  #read({ status, sealed_body }: IdempotencyRow): Known {
    return parse(status, this.#deps.sealer.unseal(sealed_body, contextOf(this.#name)));
  }

  /**
   * The response that another node has stored since load(), for a request that was refused;
   * undefined: there is none. Throws `idempotency_mismatch` if its request was a different one.
   */
  async lookAgain(): Promise<StoredResponse | undefined> {
    const { membership = ALONE } = this.#deps;
    if (!membership.isShared || this.#fingerprint === undefined) return undefined;
    const row = await this.#find();
    if (row === undefined || this.#isOwn(row)) return undefined;
    const known = this.#read(row);
    this.#assertSame(known);
    return known;
  }

  /** Sealing the same text twice gives different bytes. */
  #isOwn({ sealed_body }: IdempotencyRow): boolean {
    return this.#sealed !== null && Buffer.compare(this.#sealed, sealed_body) === 0;
  }

  #assertSame({ fingerprint }: Known): void {
    if (fingerprint === this.#fingerprint) return;
    throw new AppError('idempotency_mismatch', 'This Idempotency-Key was used with a different request');
  }

  /** True once the request is identified, so that a response can be stored for it. */
  get isBound(): boolean {
    return this.#fingerprint !== undefined;
  }

  /**
   * The stored response to the same request, if any; `fingerprint` is one line. Throws
   * `idempotency_mismatch` if the request differs.
   */
  bindRequest(fingerprint: string): StoredResponse | undefined {
    this.#fingerprint = fingerprint;
    if (this.#known) this.#assertSame(this.#known);
    return this.#known;
  }

  /** Statements for the commit with the effect. A large response is shortened by keptForm(). */
  record(response: StoredResponse): Statement[] {
    if (this.#fingerprint === undefined) throw new Error('bindRequest() must be called before record()');
    this.#recorded = response.body;
    const { clock, sealer, store } = this.#deps;
    const { status, body } = keptForm(response);
    const text = `${this.#fingerprint}\n${body}`;
    const sealedBody = sealer.seal(Buffer.from(text, 'utf8'), contextOf(this.#name));
    this.#sealed = sealedBody;
    const now = clock.now();
    return [
      store.deleteExpired(this.#name, now - IDEMPOTENCY_TTL_MS),
      store.insert({ ...this.#name, status, sealedBody, createdAt: now }),
      ...this.#trim(rowBytes(this.#name, sealedBody.length)),
    ];
  }

  /** Deletes the oldest responses of the account, if due after adding that many bytes. */
  #trim(added: number): Statement[] {
    const { store, maxKept } = this.#deps;
    const { accountId } = this.#name;
    if (!this.#hooks.isTrimDue(added)) return [];
    return [store.deleteBeyond(accountId, maxKept), store.deleteBeyondBytes(accountId, maxBytes(this.#deps))];
  }

  /**
   * Keeps the response of an accepted operation in memory while it runs: a repeated request must
   * find it, even if its row was the oldest and is deleted. The result releases it.
   */
  accept(response: StoredResponse): () => void {
    if (this.#fingerprint === undefined) throw new Error('bindRequest() must be called before accept()');
    return this.#hooks.accept({ ...response, fingerprint: this.#fingerprint });
  }

  /**
   * Stores the response of a request whose domain had no commit to attach it to, or that did more
   * work after that commit: a retry gets the first caller's response. Returns another node's
   * response if that was first.
   */
  async complete(response: StoredResponse): Promise<StoredResponse | undefined> {
    if (this.#recorded === response.body) return undefined;
    if (this.#recorded !== null) {
      await this.#deps.metadata.commit([...this.withdraw(), ...this.record(response)]);
      return undefined;
    }
    const first = await this.#keep(response);
    if (first === undefined || first.status < 400) return first;
    // The other attempt was refused while this one succeeded; a retry must learn this.
    await this.#deps.metadata.commit([...this.withdraw(), ...this.record(response)]);
    return undefined;
  }

  /**
   * Stores a refusal: the commit with the response, if any, did not happen. Returns another node's
   * response if that was first.
   */
  refuse(response: StoredResponse): Promise<StoredResponse | undefined> {
    return this.#keep(response);
  }

  async #keep(response: StoredResponse): Promise<StoredResponse | undefined> {
    try {
      await this.#deps.metadata.commit(this.record(response));
      return undefined;
    } catch (error) {
      const first = error instanceof CommitRejected ? await this.lookAgain() : undefined;
      if (first === undefined) throw error;
      return first;
    }
  }

  /** Deletes what record() stored: the request may be sent again under its key. */
  withdraw(): Statement[] {
    return [this.#deps.store.delete(this.#name)];
  }

  /** Allows the next request with this key. */
  end(): void {
    this.#hooks.release();
  }
}
