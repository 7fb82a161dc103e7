/**
 * Operations in a cluster: a node publishes the progress of its operations in their rows, and reads
 * that of other nodes there. In a cloud of one process it does nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Metadata } from '../metadata/metadata.ts';
import { AppError } from '../platform/errors.ts';
import type { Membership } from '../platform/membership.ts';
import type { OperationRow, OperationsStore } from './operations-store.ts';
import type { Progress } from './principal.ts';

/** How often a node reads requests from others and reports its progress. */
const TELL_MS = 1000;
/** Interval of reading the row of an operation that runs on another node. */
const LOOK_MS = 500;

/** Maximum wait for the end, and an abort signal. */
export interface Wait {
  readonly ms: number;
  readonly signal: AbortSignal;
}

/** An operation that this process runs. */
export interface Running {
  readonly accountId: number;
  readonly createdAt: number;
  /**
   * An AbortController, because a signal drops listeners of readers that left, and a promise would keep them.
   */
  readonly ended: AbortController;
  readonly cancelled: AbortController;
  readonly isCancellable: boolean;
  progress: Progress | null;
}

export interface OperationsOfNodesDeps {
  readonly metadata: Metadata;
  readonly store: OperationsStore;
  readonly membership: Membership;
  /** Interval of reading operations of other nodes; default: 500 ms. */
  readonly lookMs?: number;
  /** Operations of this process, by id. */
  readonly running: ReadonlyMap<string, Running>;
}

export class OperationsOfNodes {
  readonly #deps: OperationsOfNodesDeps;
  readonly #told = new WeakMap<Running, Progress>();
  /** Readers that wait for operations of other nodes, by operation id. */
  readonly #waiting = new Map<string, Set<() => void>>();
  #isWatching = false;

  constructor(deps: OperationsOfNodesDeps) {
    this.#deps = deps;
  }

  get runId(): string {
    return this.#deps.membership.runId;
  }

  /** Marks operations of this node's earlier processes as interrupted. */
  async start(): Promise<void> {
    const { metadata, store, membership } = this.#deps;
    if (membership.isShared) await metadata.commit([store.disown(membership.runId)]);
  }

  /** True while it runs on another live node. */
  runsElsewhere(row: Pick<OperationRow, 'ended_at' | 'node' | 'created_at'>): boolean {
    return row.ended_at === null && this.#isOther(row.node, row.created_at);
  }

  /** Resolves once it no longer runs elsewhere; after `ms` at the latest. */
  async waitFor(operationId: string, { ms, signal }: Wait): Promise<void> {
    const { lookMs = LOOK_MS } = this.#deps;
    for (let left = ms; left > 0 && !signal.aborted; left -= lookMs) {
      await this.#nextLook(operationId, { ms: Math.min(left, lookMs), signal });
      const row = await this.#deps.store.find(operationId);
      if (row === undefined || !this.runsElsewhere(row)) return;
    }
  }

  /** Another node reported a change: waiting readers read again. */
  changed(operationId: string): void {
    for (const look of this.#waiting.get(operationId) ?? []) look();
  }

  /** Resolves when a change is reported, or after `ms`. */
  async #nextLook(operationId: string, { ms, signal }: Wait): Promise<void> {
    const changed = new AbortController();
    const look = () => changed.abort();
    const waiting = this.#waiting.get(operationId) ?? new Set();
    this.#waiting.set(operationId, waiting.add(look));
    const any = AbortSignal.any([changed.signal, signal]);
    await sleep(ms, undefined, { signal: any, ref: false }).catch(() => {});
    waiting.delete(look);
    if (waiting.size === 0) this.#waiting.delete(operationId);
  }

  /** Other live nodes with running operations at least this old. */
  async othersWithOlder(notAfter: number): Promise<string[]> {
    const { store, membership } = this.#deps;
    if (!membership.isShared) return [];
    return (await store.nodesOf(notAfter)).filter((node) => this.#isOther(node));
  }

  /** Publishes progress and observes cancellations while this node runs operations. */
  watch(): void {
    if (this.#isWatching || !this.#deps.membership.isShared) return;
    this.#isWatching = true;
    void this.#watch().finally(() => {
      this.#isWatching = false;
    });
  }

  async #watch(): Promise<void> {
    const { running } = this.#deps;
    for (;;) {
      await sleep(TELL_MS, undefined, { ref: false });
      if (running.size === 0) return;
      // The database may be unavailable; the next round tries again.
      await Promise.all([this.#tell(), this.#obey()]).catch(() => {});
    }
  }

  async #tell(): Promise<void> {
    const { metadata, store, running } = this.#deps;
    const news: { id: string; one: Running; progress: Progress }[] = [];
    for (const [id, one] of running) {
      const { progress } = one;
      if (progress !== null && this.#told.get(one) !== progress) news.push({ id, one, progress });
    }
    if (news.length === 0) return;
    await metadata.commit(news.map(({ id, progress }) => store.setProgress(id, JSON.stringify(progress))));
    for (const { one, progress } of news) this.#told.set(one, progress);
  }

  async #obey(): Promise<void> {
    const { store, running } = this.#deps;
    for (const id of await store.toCancel(this.runId)) {
      const one = running.get(id);
      if (one?.isCancellable === true) cancel(one);
    }
  }

  #isOther(node: string, aliveAt = 0): boolean {
    const { membership } = this.#deps;
    if (!membership.isShared || node === '' || node === membership.runId) return false;
    return !membership.isGone(node, aliveAt);
  }
}

/** Cancels the work of an operation. */
export function cancel({ cancelled }: Pick<Running, 'cancelled'>): void {
  cancelled.abort(new AppError('operation_cancelled', 'The call was cancelled'));
}
