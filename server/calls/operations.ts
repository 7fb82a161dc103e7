/**
 * Calls that respond at once and end later (`Prefer: respond-async`, RFC 7240 §4.1;
 * decisions/0016). The outcome is stored in the same commit as the effect (like the response under
 * an Idempotency-Key): after a crash an ended operation has had its effect. The outcome of one that
 * was running is unknown. Other nodes read its row (operations-of-nodes.ts).
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Metadata, Statement } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import type { Sealer } from '../platform/master-key.ts';
import { ALONE, type Membership } from '../platform/membership.ts';
import {
  countEarlier,
  keptForm,
  MAX_ACCOUNT_BYTES,
  type StoredResponse,
  TrimSchedule,
} from './kept-answers.ts';
import { cancel, OperationsOfNodes, type Running, type Wait } from './operations-of-nodes.ts';
import type { OperationHead, OperationRow, OperationsStore, UncountedOperation } from './operations-store.ts';
import type { Call, Principal, Progress, Work } from './principal.ts';

const KEPT_MS = 24 * 3600 * 1000;
/**
 * Maximum running operations per account: unlike other calls they are not bounded by the number of
 * connections.
 */
const MAX_RUNNING = 100;
/** Operations of an earlier version counted per commit. */
const BEGUN = { endedAt: null, state: 'running', response: null, progress: null } as const;
/** Greater than every id. */
const LAST_ID = 'op~';

export interface OperationsDeps {
  readonly metadata: Metadata;
  readonly store: OperationsStore;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Default: no other nodes. */
  readonly membership?: Membership;
  /** See OperationsOfNodes. */
  readonly lookMs?: number;
  /**
   * True for an account's own key and its sessions, which may read everything of the account. Never throws.
   */
  readonly isOwner: (caller: Principal) => Promise<boolean>;
  /** Maximum stored operations per account; above it, the oldest ended ones are deleted. */
  readonly maxKept: number;
  /** Maximum bytes of stored outcomes per account. */
  readonly maxKeptBytes?: number;
  /** Called with an outcome that could not be stored. */
  readonly onLost: (operationId: string, error: unknown) => void;
}

export interface Operation {
  readonly operationId: string;
  /** The route's name. */
  readonly name: string;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly state: 'running' | 'ended' | 'interrupted';
  /** The response of the call; null until it has ended. */
  readonly response: StoredResponse | null;
  /** null: it reports none, or is not running. */
  readonly progress: Progress | null;
  readonly isCancellable: boolean;
}

/** A call that becomes an operation. */
export interface Accepted {
  /** The route's name. */
  readonly name: string;
  /** The handler observes `work.signal`. */
  readonly isCancellable: boolean;
}

/** An operation in a list. */
export interface OperationSummary {
  readonly operationId: string;
  readonly name: string;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** `failed` includes operations whose outcome was lost. */
  readonly state: 'running' | 'succeeded' | 'failed';
  readonly status: number | null;
}

export class Operations {
  readonly #deps: OperationsDeps;
  readonly #running = new Map<string, Running>();
  readonly #stopping = new AbortController();
  readonly #trims: TrimSchedule;
  readonly #nodes: OperationsOfNodes;

  constructor(deps: OperationsDeps) {
    const { membership = ALONE } = deps;
    this.#deps = deps;
    this.#nodes = new OperationsOfNodes({ ...deps, membership, running: this.#running });
    this.#trims = new TrimSchedule({ rows: deps.maxKept, bytes: maxBytes(deps) });
  }

  /**
   * Stores the accepted call; `also` goes into the same commit. Throws `rate_limited` if the account has too
   * many running, `shutting_down`, and the errors of a commit. The caller must run() the result.
   */
  async begin(
    { accountId, credentialId }: Principal,
    { name, isCancellable }: Accepted,
    also: (operation: Operation) => readonly Statement[],
  ): Promise<PendingOperation> {
    this.#assertMayBegin(accountId);
    const { metadata, store, clock } = this.#deps;
    const operationId = newId('op', clock);
    const ended = new AbortController();
    const end = () => {
      this.#running.delete(operationId);
      ended.abort();
    };
    const cancelled = new AbortController();
    const createdAt = clock.now();
    const running: Running = { accountId, createdAt, ended, cancelled, isCancellable, progress: null };
    this.#running.set(operationId, running);
    this.#nodes.watch();
    const created = { operationId, name, createdAt, isCancellable };
    const operation: Operation = { ...created, ...BEGUN };
    const report = (progress: Progress) => {
      running.progress = progress;
    };
    const row = { operation_id: operationId, account_id: accountId, credential_id: credentialId };
    const here = { node: this.#nodes.runId, is_cancellable: isCancellable ? 1 : 0 };
    try {
      const inserted = store.insert({ ...row, ...here, name, created_at: createdAt });
      await metadata.commit([inserted, ...this.#trim(accountId, 0), ...also(operation)]);
    } catch (error) {
      end();
      throw error;
    }
    return new PendingOperation(this.#deps, {
      operation,
      accountId,
      end,
      work: { signal: cancelled.signal, report },
      trim: (added) => this.#trim(accountId, added),
    });
  }

  /** Deletes the account's oldest ended operations, if due after adding that many bytes. */
  #trim(accountId: number, added: number): Statement[] {
    const { store, maxKept } = this.#deps;
    if (!this.#trims.isDue(accountId, added)) return [];
    return [store.deleteBeyond(accountId, maxKept), store.deleteBeyondBytes(accountId, maxBytes(this.#deps))];
  }

  /** The caller's operation, after its end or the wait. Throws `operation_not_found`. */
  async find(caller: Principal, operationId: string, { ms, signal }: Wait): Promise<Operation> {
    const row = await this.#rowFor(caller, operationId);
    const running = this.#running.get(operationId);
    if (running !== undefined) {
      const any = AbortSignal.any([running.ended.signal, this.#stopping.signal, signal]);
      await sleep(ms, undefined, { signal: any, ref: false }).catch(() => {});
    } else if (this.#nodes.runsElsewhere(row)) {
      await this.#nodes.waitFor(operationId, {
        ms,
        signal: AbortSignal.any([this.#stopping.signal, signal]),
      });
    }
    const now = this.#running.get(operationId);
    return this.#present(await this.#rowFor(caller, operationId), now);
  }

  /**
   * Requests the end of the caller's operation; its effects until then remain. Resolves like
   * find(). An ended operation does not change. Throws `operation_not_found`,
   * `operation_not_cancellable`.
   */
  async cancel(
    { principal: caller, entry }: Pick<Call, 'principal' | 'entry'>,
    operationId: string,
    wait: Wait,
  ): Promise<Operation> {
    const row = await this.#rowFor(caller, operationId);
    const running = this.#running.get(operationId);
    const isElsewhere = running === undefined && this.#nodes.runsElsewhere(row);
    if (running?.isCancellable === false || (isElsewhere && row.is_cancellable === 0)) {
      throw new AppError('operation_not_cancellable', `${row.name} cannot be cancelled`);
    }
    if (running !== undefined) cancel(running);
    const { metadata, store } = this.#deps;
    if (isElsewhere) {
      await metadata.commit([store.askToCancel(operationId), ...(entry?.statements(undefined) ?? [])]);
      entry?.stored();
    }
    return this.find(caller, operationId, wait);
  }

  /**
   * The caller's, newest first, without their outcomes: all of the account for its own key and
   * sessions, else those of the same key. `before`: an id, or undefined for the first page.
   */
  async *list(
    caller: Principal,
    { before, limit }: { readonly before: string | undefined; readonly limit: number },
  ): AsyncGenerator<OperationSummary> {
    const { store, isOwner } = this.#deps;
    const credentialId = (await isOwner(caller)) ? undefined : caller.credentialId;
    const page = { before: before ?? LAST_ID, limit, credentialId };
    for (const row of await store.listBefore(caller.accountId, page)) yield this.#summary(row);
  }

  #summary(row: OperationHead): OperationSummary {
    const { operation_id, name, created_at, ended_at, status } = row;
    const common = { operationId: operation_id, name, createdAt: created_at, endedAt: ended_at, status };
    if (status !== null) return { ...common, state: status < 400 ? 'succeeded' : 'failed' };
    const isRunning = this.#running.has(operation_id) || this.#nodes.runsElsewhere(row);
    return { ...common, state: isRunning ? 'running' : 'failed' };
  }

  /** Accepts no more calls and ends all waiting. Resolves when none is running, or after `ms`. */
  async drain(ms: number): Promise<void> {
    this.#stopping.abort();
    const done = new AbortController();
    const late = sleep(ms, undefined, { signal: done.signal }).catch(() => {});
    for (const { ended } of this.#running.values()) {
      if (!ended.signal.aborted) await Promise.race([once(ended.signal, 'abort'), late]);
    }
    done.abort();
  }

  /** Call before the first operation begins: those of an earlier process of this node were interrupted. */
  async start(): Promise<void> {
    await this.#nodes.start();
  }

  /** Call with each operation that changed, here or (as far as known) at another node. */
  changed(operationId: string): void {
    this.#nodes.changed(operationId);
  }

  /** Deletes operations older than 24 h, unless they run. */
  async sweep(): Promise<void> {
    const { metadata, store, clock } = this.#deps;
    const before = clock.now() - KEPT_MS;
    const nodes = await this.#nodes.othersWithOlder(before);
    const old = [...this.#running].filter(([, { createdAt }]) => createdAt <= before);
    const running = old.map(([id]) => id);
    await metadata.commit([store.deleteOlderThan(before, { running, nodes })]);
  }

  /** See countEarlier() of kept-answers.ts. */
  async countEarlier(): Promise<void> {
    const { metadata, store } = this.#deps;
    const shorten = (row: UncountedOperation) => this.#shorten(row);
    await countEarlier({ metadata, store, shorten, maxBytes: maxBytes(this.#deps) });
  }

  async #shorten(row: UncountedOperation): Promise<Statement> {
    const { store, sealer } = this.#deps;
    const { operation_id: id, status } = row;
    const sealed = (await store.find(id))?.sealed_body;
    if (!sealed) return store.count(row);
    const body = sealer.unseal(sealed, contextOf(id)).toString('utf8');
    return store.count(row, sealer.seal(Buffer.from(keptForm({ status, body }).body, 'utf8'), contextOf(id)));
  }

  #assertMayBegin(accountId: number): void {
    if (this.#stopping.signal.aborted) throw new AppError('shutting_down', 'Cloudlet is being stopped');
    let count = 0;
    for (const running of this.#running.values()) if (running.accountId === accountId) count++;
    if (count < MAX_RUNNING) return;
    throw new AppError('rate_limited', `An account can run at most ${MAX_RUNNING} operations at a time`, {
      retryAfterSeconds: 1,
    });
  }

  /** A response may contain data only for the key of the call, for example the account's own key. */
  async #rowFor(caller: Principal, operationId: string): Promise<OperationRow> {
    const row = await this.#deps.store.find(operationId);
    if (row?.account_id === caller.accountId) {
      if (row.credential_id === caller.credentialId || (await this.#deps.isOwner(caller))) return row;
    }
    throw new AppError('operation_not_found', `There is no operation ${operationId}`);
  }

  #present(row: OperationRow, running: Running | undefined): Operation {
    const { operation_id, name, created_at, ended_at, status, sealed_body } = row;
    const isElsewhere = running === undefined && this.#nodes.runsElsewhere(row);
    const still = isElsewhere ? toldBy(row) : heldBy(running);
    const common = { operationId: operation_id, name, createdAt: created_at, endedAt: ended_at, ...still };
    if (status === null || sealed_body === null) {
      const isRunning = running !== undefined || isElsewhere;
      return { ...common, state: isRunning ? 'running' : 'interrupted', response: null };
    }
    const body = this.#deps.sealer.unseal(sealed_body, contextOf(operation_id)).toString('utf8');
    return { ...common, state: 'ended', response: { status, body } };
  }
}

type Still = Pick<Operation, 'progress' | 'isCancellable'>;

function heldBy(running: Running | undefined): Still {
  return { progress: running?.progress ?? null, isCancellable: running?.isCancellable ?? false };
}

/** Progress from the row of an operation that another node runs. */
function toldBy({ progress, is_cancellable }: OperationRow): Still {
  return { progress: progress === null ? null : JSON.parse(progress), isCancellable: is_cancellable === 1 };
}

interface WorkEnd extends StoredResponse {
  readonly also?: readonly Statement[];
}

function maxBytes({ maxKeptBytes = MAX_ACCOUNT_BYTES }: OperationsDeps): number {
  return maxKeptBytes;
}

interface Pending {
  readonly operation: Operation;
  readonly accountId: number;
  readonly end: () => void;
  readonly work: Work;
  readonly trim: (added: number) => Statement[];
}

/** An accepted operation. */
class PendingOperation {
  readonly #deps: OperationsDeps;
  readonly work: Work;
  readonly #end: () => void;
  readonly #trim: Pending['trim'];
  readonly #accountId: number;
  readonly operation: Operation;
  #recorded = false;

  constructor(deps: OperationsDeps, { operation, accountId, end, work, trim }: Pending) {
    this.#deps = deps;
    this.work = work;
    this.operation = operation;
    this.#accountId = accountId;
    this.#end = end;
    this.#trim = trim;
  }

  /** Statements for the commit with the effect. */
  record(response: StoredResponse): Statement[] {
    this.#recorded = true;
    return this.#endWith(response);
  }

  /**
   * Runs the work and stores its response, unless record() did. `work` returns failures too, with
   * the statements to store with one.
   */
  async run(work: () => Promise<WorkEnd>): Promise<void> {
    try {
      const { also = [], ...response } = await work();
      if (this.#recorded && response.status < 400) return;
      // If the commit with the record failed, no outcome was stored; otherwise the first one counts.
      await this.#deps.metadata.commit([...this.#endWith(response), ...also]);
    } catch (error) {
      this.#deps.onLost(this.operation.operationId, error);
    } finally {
      this.#end();
    }
  }

  /** A large response is shortened by keptForm(). */
  #endWith(response: StoredResponse): Statement[] {
    const { sealer, store, clock } = this.#deps;
    const { operationId } = this.operation;
    const { status, body } = keptForm(response);
    const sealedBody = sealer.seal(Buffer.from(body, 'utf8'), contextOf(operationId));
    const ended = { accountId: this.#accountId, endedAt: clock.now(), status, sealedBody };
    return [store.end(operationId, ended), ...this.#trim(sealedBody.length)];
  }
}

function contextOf(operationId: string): string {
  return `operation:${operationId}`;
}
