/**
 * Calls that are answered at once and end later (`Prefer: respond-async`, RFC 7240 §4.1; decisions/0016).
 * Its outcome is stored in the same commit as its effect (like the response under an Idempotency-Key):
 * after a crash an operation that is called ended has had its effect. Of one that was running nobody knows.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Metadata, Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';
import { type StoredResponse, TrimTurns } from './idempotency.ts';
import type { OperationRow, OperationsStore } from './operations-store.ts';
import type { Principal } from './principal.ts';

const KEPT_MS = 24 * 3600 * 1000;
/** For one account at a time: unlike other calls they are not bounded by the number of connections. */
const MAX_RUNNING = 100;

export interface OperationsDeps {
  readonly metadata: Metadata;
  readonly store: OperationsStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Throws nothing: true for an account's own key and its sessions, which may see all that it has. */
  readonly isOwner: (caller: Principal) => Promise<boolean>;
  /** Operations kept of an account; beyond, the oldest that have ended go. */
  readonly maxKept: number;
  /** Told of an end that could not be stored. */
  readonly onLost: (operationId: string, error: unknown) => void;
}

export interface Operation {
  readonly operationId: string;
  /** The route's name. */
  readonly name: string;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly state: 'running' | 'ended' | 'interrupted';
  /** What the call would have been answered; null unless it has ended. */
  readonly response: StoredResponse | null;
}

/** How long, and for whom, a reader waits for the end. */
export interface Wait {
  readonly ms: number;
  readonly signal: AbortSignal;
}

interface Running {
  readonly accountId: number;
  /** Waiters come and go: a signal forgets those that are gone, a promise would keep them. */
  readonly ended: AbortController;
}

export class Operations {
  readonly #deps: OperationsDeps;
  readonly #running = new Map<string, Running>();
  readonly #stopping = new AbortController();
  readonly #trims: TrimTurns;

  constructor(deps: OperationsDeps) {
    this.#deps = deps;
    this.#trims = new TrimTurns(deps.maxKept);
  }

  /**
   * Stores that the call was taken; `also` goes into the same commit. Throws `rate_limited` when the account
   * has too many running, `shutting_down`, and what a commit throws. What it returns must be run().
   */
  async begin(
    { accountId, credentialId }: Principal,
    name: string,
    also: (operation: Operation) => readonly Statement[],
  ): Promise<PendingOperation> {
    this.#assertMayBegin(accountId);
    const { metadata, store, clock, maxKept } = this.#deps;
    const operationId = newId('op', clock);
    const ended = new AbortController();
    const end = () => {
      this.#running.delete(operationId);
      ended.abort();
    };
    this.#running.set(operationId, { accountId, ended });
    const created = { operationId, name, createdAt: clock.now() };
    const operation: Operation = { ...created, endedAt: null, state: 'running', response: null };
    const row = { operation_id: operationId, account_id: accountId, credential_id: credentialId };
    try {
      const inserted = store.insert({ ...row, name, created_at: created.createdAt });
      const trim = this.#trims.isDue(accountId) ? [store.deleteBeyond(accountId, maxKept)] : [];
      await metadata.commit([inserted, ...trim, ...also(operation)]);
    } catch (error) {
      end();
      throw error;
    }
    return new PendingOperation(this.#deps, { operation, accountId, end });
  }

  /** The caller's operation, once it has ended or the wait is over. Throws `operation_not_found`. */
  async find(caller: Principal, operationId: string, { ms, signal }: Wait): Promise<Operation> {
    await this.#rowFor(caller, operationId);
    const running = this.#running.get(operationId);
    if (running !== undefined) {
      const any = AbortSignal.any([running.ended.signal, this.#stopping.signal, signal]);
      await sleep(ms, undefined, { signal: any, ref: false }).catch(() => {});
    }
    const isRunning = this.#running.has(operationId);
    return this.#present(await this.#rowFor(caller, operationId), isRunning);
  }

  /** Takes no more and ends all waiting. Resolves when nothing runs, but after `ms` at the latest. */
  async drain(ms: number): Promise<void> {
    this.#stopping.abort();
    const done = new AbortController();
    const late = sleep(ms, undefined, { signal: done.signal }).catch(() => {});
    for (const { ended } of this.#running.values()) {
      if (!ended.signal.aborted) await Promise.race([once(ended.signal, 'abort'), late]);
    }
    done.abort();
  }

  /** Forgets what was begun more than 24 h ago. */
  async sweep(): Promise<void> {
    const { metadata, store, clock } = this.#deps;
    await metadata.commit([store.deleteOlderThan(clock.now() - KEPT_MS)]);
  }

  #assertMayBegin(accountId: number): void {
    if (this.#stopping.signal.aborted) throw new AppError('shutting_down', 'Cloudlet is being stopped');
    let count = 0;
    for (const running of this.#running.values()) if (running.accountId === accountId) count++;
    if (count < MAX_RUNNING) return;
    throw new AppError('rate_limited', `At most ${MAX_RUNNING} operations of one account run at a time`, {
      retryAfterSeconds: 1,
    });
  }

  /** A response may hold what the key that asked may see and another may not: the account's own key, say. */
  async #rowFor(caller: Principal, operationId: string): Promise<OperationRow> {
    const row = await this.#deps.store.find(operationId);
    if (row?.account_id === caller.accountId) {
      if (row.credential_id === caller.credentialId || (await this.#deps.isOwner(caller))) return row;
    }
    throw new AppError('operation_not_found', `There is no operation ${operationId}`);
  }

  #present(row: OperationRow, isRunning: boolean): Operation {
    const { operation_id, name, created_at, ended_at, status, sealed_body } = row;
    const common = { operationId: operation_id, name, createdAt: created_at, endedAt: ended_at };
    if (status === null || sealed_body === null) {
      return { ...common, state: isRunning ? 'running' : 'interrupted', response: null };
    }
    const body = this.#deps.sealer.unseal(sealed_body, contextOf(operation_id)).toString('utf8');
    return { ...common, state: 'ended', response: { status, body } };
  }
}

interface WorkEnd extends StoredResponse {
  readonly also?: readonly Statement[];
}

/** An operation that was taken. */
class PendingOperation {
  readonly #deps: OperationsDeps;
  readonly #end: () => void;
  readonly #accountId: number;
  readonly operation: Operation;
  #recorded = false;

  constructor(
    deps: OperationsDeps,
    { operation, accountId, end }: { operation: Operation; accountId: number; end: () => void },
  ) {
    this.#deps = deps;
    this.operation = operation;
    this.#accountId = accountId;
    this.#end = end;
  }

  /** To be part of the commit that has the effect. */
  record(response: StoredResponse): Statement[] {
    this.#recorded = true;
    return [this.#endWith(response)];
  }

  /**
   * Does the work and stores its response, unless record() did. `work` answers failures too, and says what
   * else is to be stored with one.
   */
  async run(work: () => Promise<WorkEnd>): Promise<void> {
    try {
      const { also = [], ...response } = await work();
      if (this.#recorded && response.status < 400) return;
      // Had a commit with the record failed, none was stored; had it not, the first end counts.
      await this.#deps.metadata.commit([this.#endWith(response), ...also]);
    } catch (error) {
      this.#deps.onLost(this.operation.operationId, error);
    } finally {
      this.#end();
    }
  }

  #endWith({ status, body }: StoredResponse): Statement {
    const { sealer, store, clock } = this.#deps;
    const { operationId } = this.operation;
    const sealedBody = sealer.seal(Buffer.from(body, 'utf8'), contextOf(operationId));
    return store.end(operationId, { accountId: this.#accountId, endedAt: clock.now(), status, sealedBody });
  }
}

function contextOf(operationId: string): string {
  return `operation:${operationId}`;
}
