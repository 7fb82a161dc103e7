/**
 * Notifies watchers of changed resources: which resource changed, not its new state. Nothing is stored, so a
 * watcher that reconnects must read everything again.
 */
import type { Bus } from '../metadata/bus.ts';
import type { ResourceChange, ResourceKind } from '../metadata/metadata.ts';
import { AppError } from '../platform/errors.ts';
import { type Permission, type Principal, permits } from './principal.ts';

/** The permission needed to be notified of a kind. */
const NEEDED: Readonly<Record<ResourceKind, Permission>> = {
  vm: 'compute:read',
  database: 'databases:read',
  balance: 'billing:read',
  operation: 'account:read',
  recovery_point: 'admin:read',
};
/** Changes within this time are sent together. */
const GATHER_MS = 100;
/** With more changes than this, only `lost` is sent. */
const GATHER_MAX = 200;

export interface Changed {
  readonly kind: ResourceKind;
  readonly id: string;
}

/** A subscriber. Its methods must neither throw nor block. */
export interface Watcher {
  changed(things: readonly Changed[]): void;
  /** Too many changes to list. */
  lost(): void;
}

interface Watch {
  readonly principal: Principal;
  readonly watcher: Watcher;
  readonly gathered: Map<string, Changed>;
  timer: NodeJS.Timeout | undefined;
}

export class Updates {
  readonly #watches = new Map<number, Set<Watch>>();
  readonly #maxPerAccount: number;
  readonly #bus: Pick<Bus, 'onChange'>;
  /** Stops listening; null: there are no watchers. */
  #stop: (() => void) | null = null;

  constructor(deps: { readonly maxPerAccount: number; readonly bus: Pick<Bus, 'onChange'> }) {
    this.#maxPerAccount = deps.maxPerAccount;
    this.#bus = deps.bus;
  }

  /**
   * Notifies `watcher` until the returned function is called. Throws `overloaded` if the account has too many
   * watchers.
   */
  watch(principal: Principal, watcher: Watcher): () => void {
    const { accountId } = principal;
    const own = this.#watches.get(accountId) ?? new Set<Watch>();
    if (own.size >= this.#maxPerAccount) {
      const detail = `An account can have at most ${this.#maxPerAccount} update connections`;
      throw new AppError('overloaded', detail, { hint: 'Close an unused connection' });
    }
    const watch: Watch = { principal, watcher, gathered: new Map(), timer: undefined };
    this.#watches.set(accountId, own.add(watch));
    // Without watchers, commits need not be reported.
    this.#stop ??= this.#bus.onChange(this);
    return () => {
      clearTimeout(watch.timer);
      own.delete(watch);
      if (own.size === 0 && this.#watches.get(accountId) === own) this.#watches.delete(accountId);
      if (this.#watches.size > 0) return;
      this.#stop?.();
      this.#stop = null;
    };
  }

  /** Changes were lost: every watcher reads everything again. */
  lost(): void {
    for (const watches of this.#watches.values()) for (const { watcher } of watches) watcher.lost();
  }

  /** Resources without an account are reported to every watcher with the permission. */
  tell({ accountId, kind, id }: ResourceChange): void {
    const watchSets = accountId === null ? this.#watches.values() : [this.#watches.get(accountId) ?? []];
    for (const watches of watchSets) {
      for (const watch of watches) {
        if (permits(watch.principal, NEEDED[kind])) gather(watch, { kind, id });
      }
    }
  }
}

function gather(watch: Watch, thing: Changed): void {
  watch.gathered.set(`${thing.kind} ${thing.id}`, thing);
  watch.timer ??= setTimeout(() => flush(watch), GATHER_MS).unref();
}

function flush(watch: Watch): void {
  const things = [...watch.gathered.values()];
  watch.gathered.clear();
  watch.timer = undefined;
  if (things.length > GATHER_MAX) watch.watcher.lost();
  else watch.watcher.changed(things);
}
