/**
 * Idempotency-Key: one effect and one response, however often a change is repeated within 24 h. The response
 * is stored in the same commit as the effect (see metadata/change.ts), so that a crash cannot come between
 * them. Races are decided in memory: the data directory has one process. Each credential has its own keys: a
 * response may hold data that another credential of the account must not see. Only the account's own key
 * leaves them to its successor, so that a retry after a rotation finds its response. Bodies may hold secrets
 * (a new API key) and are therefore sealed, and with them the request's fingerprint, from which a password in
 * it could be guessed.
 */
import type { Metadata, Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import type { Sealer } from '../platform/master-key.ts';
import type { IdempotencyStore } from './idempotency-store.ts';
import type { Principal } from './principal.ts';

export interface StoredResponse {
  readonly status: number;
  readonly body: string;
}

const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000;

interface IdempotencyDeps {
  readonly metadata: Metadata;
  readonly store: IdempotencyStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Maximum stored responses per account; beyond, the oldest are deleted. */
  readonly maxKept: number;
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
  readonly #trims: TrimSchedule;

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps;
    this.#trims = new TrimSchedule(deps.maxKept);
  }

  /**
   * Throws `idempotency_in_flight` while the first request with this key runs, and `idempotency_mismatch` to
   * an older key of the account if its current one has used this. The caller must call end() on the result.
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
      isTrimDue: () => this.#trims.isDue(accountId),
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
    await this.#deps.metadata.commit([
      this.#deps.store.deleteOlderThan(this.#deps.clock.now() - IDEMPOTENCY_TTL_MS),
    ]);
  }
}

interface AttemptHooks {
  /** True if the account's oldest responses should be removed with the next one stored. */
  readonly isTrimDue: () => boolean;
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

  constructor(deps: IdempotencyDeps, name: AttemptName, hooks: AttemptHooks) {
    this.#deps = deps;
    this.#name = name;
    this.#hooks = hooks;
  }

  async load(): Promise<void> {
    const row = await this.#deps.store.find(this.#name, this.#deps.clock.now() - IDEMPOTENCY_TTL_MS);
    if (!row) return;
    const text = this.#deps.sealer.unseal(row.sealed_body, this.#context).toString('utf8');
    const end = text.indexOf('\n');
    this.#known = { fingerprint: text.slice(0, end), status: row.status, body: text.slice(end + 1) };
  }

  /** True once the request is known, so that a response can be stored for it. */
  get isBound(): boolean {
    return this.#fingerprint !== undefined;
  }

  get #context(): string {
    return `idempotency:${this.#name.scope}:${this.#name.key}`;
  }

  /**
   * The stored response to the same request, if any; `fingerprint` is one line. Throws `idempotency_mismatch`
   * when the request differs.
   */
  bindRequest(fingerprint: string): StoredResponse | undefined {
    this.#fingerprint = fingerprint;
    if (this.#known && this.#known.fingerprint !== fingerprint) {
      throw new AppError('idempotency_mismatch', 'This Idempotency-Key was used with a different request');
    }
    return this.#known;
  }

  /** Statements for the commit with the effect. */
  record(response: StoredResponse): Statement[] {
    if (this.#fingerprint === undefined) throw new Error('bindRequest() comes before record()');
    this.#recorded = response.body;
    const { clock, sealer, store, maxKept } = this.#deps;
    const text = `${this.#fingerprint}\n${response.body}`;
    const sealedBody = sealer.seal(Buffer.from(text, 'utf8'), this.#context);
    const now = clock.now();
    return [
      store.deleteExpired(this.#name, now - IDEMPOTENCY_TTL_MS),
      store.insert({ ...this.#name, status: response.status, sealedBody, createdAt: now }),
      ...(this.#hooks.isTrimDue() ? [store.deleteBeyond(this.#name.accountId, maxKept)] : []),
    ];
  }

  /**
   * Stores the response of a request whose domain had no commit to attach it to, or that did more work after
   * that commit: a retry gets the first caller's response.
   */
  async complete(response: StoredResponse): Promise<void> {
    if (this.#recorded === response.body) return;
    const earlier = this.#recorded === null ? [] : this.withdraw();
    await this.#deps.metadata.commit([...earlier, ...this.record(response)]);
  }

  /** Stores a refusal: the commit with the response, if any, did not happen. */
  async refuse(response: StoredResponse): Promise<void> {
    await this.#deps.metadata.commit(this.record(response));
  }

  /** Deletes what record() stored: the request may be sent again under its key. */
  withdraw(): Statement[] {
    return [this.#deps.store.delete(this.#name)];
  }

  /** Lets the next request with this key run. */
  end(): void {
    this.#hooks.release();
  }
}

/** Tells when to remove an account's oldest rows: after a number of new ones, not with every row. */
export class TrimSchedule {
  readonly #every: number;
  readonly #added = new Map<number, number>();

  /** `kept`: maximum rows per account, exceeded by at most a hundredth. */
  constructor(kept: number) {
    this.#every = Math.max(1, Math.floor(kept / 100));
  }

  /** Call once per row. The first after the start counts as due: the number of stored rows is unknown. */
  isDue(accountId: number): boolean {
    const added = this.#added.get(accountId) ?? 0;
    this.#added.set(accountId, (added + 1) % this.#every);
    return added === 0;
  }
}
